import { toPlaceKey } from './place-key.js';

/** A state, province or canton, with its code in data/places.tsv.br (admin1 of GeoNames; AU and CA: abbreviations). */
export type Region = { country: string; code: string };

/**
 * Each line is a code, followed by the names and abbreviations in addresses. Provinces of Italy and Spain and counties
 * of England stand for their region, which GeoNames knows.
 */
const REGIONS: Record<string, string> = {
  US: `AL:Alabama,AL,Ala|AK:Alaska,AK|AZ:Arizona,AZ,Ariz|AR:Arkansas,AR,Ark|CA:California,CA,Calif|CO:Colorado,CO,Colo
CT:Connecticut,CT,Conn|DE:Delaware,DE,Del|DC:District of Columbia,Washington,DC|FL:Florida,FL,Fla|GA:Georgia,GA|HI:Hawaii,HI
ID:Idaho,ID|IL:Illinois,IL,Ill|IN:Indiana,IN,Ind|IA:Iowa,IA|KS:Kansas,KS,Kans|KY:Kentucky,KY|LA:Louisiana,LA|ME:Maine,ME
MD:Maryland,MD|MA:Massachusetts,MA,Mass|MI:Michigan,MI,Mich|MN:Minnesota,MN,Minn|MS:Mississippi,MS,Miss|MO:Missouri,MO
MT:Montana,MT,Mont|NE:Nebraska,NE,Nebr|NV:Nevada,NV,Nev|NH:New Hampshire,NH|NJ:New Jersey,NJ|NM:New Mexico,NM|NY:New York,NY
NC:North Carolina,NC|ND:North Dakota,ND|OH:Ohio,OH|OK:Oklahoma,OK,Okla|OR:Oregon,OR,Ore|PA:Pennsylvania,PA,Penn|RI:Rhode Island,RI
SC:South Carolina,SC|SD:South Dakota,SD|TN:Tennessee,TN,Tenn|TX:Texas,TX,Tex|UT:Utah,UT|VT:Vermont,VT|VA:Virginia,VA
WA:Washington,Washington State,WA,Wash|WV:West Virginia,WV|WI:Wisconsin,WI,Wis|WY:Wyoming,WY,Wyo`,
  CA: `AB:Alberta,AB,Alta|BC:British Columbia,Colombie-Britannique,BC|MB:Manitoba,MB|NB:New Brunswick,Nouveau-Brunswick,NB
NL:Newfoundland and Labrador,Newfoundland & Labrador,Newfoundland,NL|NS:Nova Scotia,Nouvelle-Écosse,NS|ON:Ontario,ON,Ont
PE:Prince Edward Island,PEI,PE|QC:Québec,QC,PQ|SK:Saskatchewan,SK,Sask|YT:Yukon,YT|NT:Northwest Territories,NT|NU:Nunavut,NU`,
  AU: `ACT:Australian Capital Territory,ACT|NSW:New South Wales,NSW|NT:Northern Territory,NT|QLD:Queensland,QLD,Qld
SA:South Australia,SA|TAS:Tasmania,TAS,Tas|VIC:Victoria,VIC,Vic|WA:Western Australia,WA`,
  GB: `SCT:Scotland|WLS:Wales,Cymru|NIR:Northern Ireland
ENG:England,Bedfordshire,Berkshire,Buckinghamshire,Cambridgeshire,Cheshire,Cornwall,Cumbria,Derbyshire,Devon,Dorset,County Durham
ENG:East Sussex,West Sussex,Sussex,Essex,Gloucestershire,Greater London,Greater Manchester,Hampshire,Herefordshire,Hertfordshire,Kent
ENG:Lancashire,Leicestershire,Lincolnshire,Merseyside,Norfolk,Northamptonshire,Northumberland,North Yorkshire,South Yorkshire
ENG:West Yorkshire,Yorkshire,Nottinghamshire,Oxfordshire,Shropshire,Somerset,Staffordshire,Suffolk,Surrey,Tyne and Wear
ENG:Warwickshire,West Midlands,Wiltshire,Worcestershire,Isle of Wight|NIR:County Antrim,County Down,County Armagh
SCT:Aberdeenshire,Fife,Highland,Perthshire,Lanarkshire|WLS:Gwynedd,Powys,Dyfed,Pembrokeshire,Carmarthenshire`,
  DE: `01:Baden-Württemberg,BW|02:Bayern,Bavaria,BY|03:Freie Hansestadt Bremen,Bremen|04:Hamburg,HH|05:Hessen,Hesse,HE
06:Niedersachsen,Lower Saxony,NI|07:Nordrhein-Westfalen,North Rhine-Westphalia,NRW,NW|08:Rheinland-Pfalz,Rhineland-Palatinate,RP,RLP
09:Saarland,SL|10:Schleswig-Holstein,SH|11:Brandenburg,BB|12:Mecklenburg-Vorpommern,MV|13:Sachsen,Saxony,SN
14:Sachsen-Anhalt,Saxony-Anhalt,ST|15:Thüringen,Thuringia,TH|16:Berlin,BE`,
  AT: `01:Burgenland,Bgld|02:Kärnten,Carinthia,Ktn|03:Niederösterreich,Lower Austria,NÖ|04:Oberösterreich,Upper Austria,OÖ
05:Salzburg,Sbg|06:Steiermark,Styria,Stmk|07:Tirol,Tyrol|08:Vorarlberg,Vbg|09:Wien,Vienna`,
  CH: `AG:Aargau,AG|AI:Appenzell Innerrhoden,AI|AR:Appenzell Ausserrhoden,AR|BE:Bern,Berne,BE|BL:Basel-Landschaft,Baselland,BL
BS:Basel-Stadt,Basel,BS|FR:Fribourg,Freiburg,FR|GE:Genève,Genf,Geneva,GE|GL:Glarus,GL|GR:Graubünden,Grisons,Grigioni,GR|JU:Jura,JU
LU:Luzern,Lucerne,LU|NE:Neuchâtel,Neuenburg,NE|NW:Nidwalden,NW|OW:Obwalden,OW|SG:St. Gallen,Sankt Gallen,SG|SH:Schaffhausen,SH
SO:Solothurn,SO|SZ:Schwyz,SZ|TG:Thurgau,TG|TI:Ticino,Tessin,TI|UR:Uri,UR|VD:Vaud,Waadt,VD|VS:Valais,Wallis,VS|ZG:Zug,ZG
ZH:Zürich,Zurich,ZH`,
  IT: `01:Abruzzo,AQ,CH,PE,TE,Chieti,Pescara,Teramo,L'Aquila|02:Basilicata,MT,PZ,Matera,Potenza
03:Calabria,CZ,CS,KR,RC,VV,Cosenza,Crotone,Catanzaro,Reggio Calabria
04:Campania,AV,BN,CE,NA,SA,Avellino,Benevento,Caserta,Napoli,Naples,Salerno
05:Emilia-Romagna,BO,FC,FE,MO,PR,PC,RA,RE,RN,Bologna,Ferrara,Modena,Parma,Piacenza,Ravenna,Reggio Emilia,Rimini,Forlì-Cesena
06:Friuli-Venezia Giulia,GO,PN,TS,UD,Gorizia,Pordenone,Trieste,Udine|07:Lazio,FR,LT,RI,RM,VT,Roma,Rome,Frosinone,Latina,Rieti,Viterbo
08:Liguria,GE,IM,SP,SV,Genova,Imperia,La Spezia,Savona
09:Lombardia,Lombardy,BG,BS,CO,CR,LC,LO,MN,MI,MB,PV,SO,VA,Bergamo,Brescia,Como,Cremona,Lecco,Lodi,Mantova,Milano,Milan,Monza e Brianza
09:Pavia,Sondrio,Varese|10:Marche,AN,AP,FM,MC,PU,Ancona,Ascoli Piceno,Fermo,Macerata,Pesaro e Urbino|11:Molise,CB,IS,Campobasso,Isernia
12:Piemonte,Piedmont,AL,AT,BI,CN,NO,TO,VB,VC,Alessandria,Asti,Biella,Cuneo,Novara,Torino,Turin,Vercelli
13:Puglia,Apulia,BA,BT,BR,FG,LE,TA,Bari,Brindisi,Foggia,Lecce,Taranto|14:Sardegna,Sardinia,CA,NU,OR,SS,SU,Cagliari,Nuoro,Oristano,Sassari
15:Sicilia,Sicily,AG,CL,CT,EN,ME,PA,RG,SR,TP,Agrigento,Caltanissetta,Catania,Enna,Messina,Palermo,Ragusa,Siracusa,Trapani
16:Toscana,Tuscany,AR,FI,GR,LI,LU,MS,PI,PT,PO,SI,Arezzo,Firenze,Florence,Grosseto,Livorno,Lucca,Pisa,Pistoia,Prato,Siena
17:Trentino-Alto Adige,Südtirol,Alto Adige,South Tyrol,BZ,TN,Bolzano,Trento|18:Umbria,PG,TR,Perugia,Terni|19:Valle d'Aosta,Aosta,AO
20:Veneto,BL,PD,RO,TV,VE,VI,VR,Belluno,Padova,Rovigo,Treviso,Venezia,Venice,Vicenza,Verona`,
  ES: `51:Andalucía,Andalusia,Almería,Cádiz,Córdoba,Granada,Huelva,Jaén,Málaga,Sevilla,Seville|52:Aragón,Huesca,Teruel,Zaragoza
34:Asturias,Principado de Asturias|07:Islas Baleares,Illes Balears,Baleares,Balearic Islands,Mallorca,Ibiza,Menorca
53:Canarias,Islas Canarias,Canary Islands,Las Palmas,Santa Cruz de Tenerife,Tenerife,Gran Canaria,Lanzarote|39:Cantabria
54:Castilla-La Mancha,Albacete,Ciudad Real,Cuenca,Guadalajara,Toledo
55:Castilla y León,Castile and León,Ávila,Burgos,León,Palencia,Salamanca,Segovia,Soria,Valladolid,Zamora
56:Cataluña,Catalunya,Catalonia,Barcelona,Girona,Gerona,Lleida,Lérida,Tarragona|57:Extremadura,Badajoz,Cáceres
58:Galicia,Galiza,A Coruña,La Coruña,Lugo,Ourense,Orense,Pontevedra|27:La Rioja|29:Comunidad de Madrid,Madrid|31:Región de Murcia,Murcia
32:Navarra,Navarre,Nafarroa|59:País Vasco,Euskadi,Basque Country,Álava,Araba,Vizcaya,Bizkaia,Guipúzcoa,Gipuzkoa
60:Comunidad Valenciana,Comunitat Valenciana,Valencia,València,Alicante,Alacant,Castellón,Castelló|CE:Ceuta|ML:Melilla`,
  BR: `01:Acre,AC|02:Alagoas,AL|03:Amapá,AP|04:Amazonas,AM|05:Bahia,BA|06:Ceará,CE|07:Distrito Federal,DF|08:Espírito Santo,ES
11:Mato Grosso do Sul,MS|13:Maranhão,MA|14:Mato Grosso,MT|15:Minas Gerais,MG|16:Pará,PA|17:Paraíba,PB|18:Paraná,PR|20:Piauí,PI
21:Rio de Janeiro,RJ|22:Rio Grande do Norte,RN|23:Rio Grande do Sul,RS|24:Rondônia,RO|25:Roraima,RR|26:Santa Catarina,SC
27:São Paulo,SP|28:Sergipe,SE|29:Goiás,GO|30:Pernambuco,PE|31:Tocantins,TO`,
  MX: `01:Aguascalientes,Ags|02:Baja California,BC|03:Baja California Sur,BCS|04:Campeche,Camp|05:Chiapas,Chis|06:Chihuahua,Chih
07:Coahuila,Coahuila de Zaragoza,Coah|08:Colima,Col|09:Ciudad de México,Mexico City,CDMX,DF,Distrito Federal|10:Durango,Dgo
11:Guanajuato,Gto|12:Guerrero,Gro|13:Hidalgo,Hgo|14:Jalisco,Jal|15:Estado de México,State of Mexico,Edo. de México,Edo. Méx.,Méx.,Edomex
16:Michoacán,Michoacán de Ocampo,Mich|17:Morelos,Mor|18:Nayarit,Nay|19:Nuevo León,NL|20:Oaxaca,Oax|21:Puebla,Pue|22:Querétaro,Qro
23:Quintana Roo,QR,Q Roo,QRoo|24:San Luis Potosí,SLP|25:Sinaloa,Sin|26:Sonora,Son|27:Tabasco,Tab|28:Tamaulipas,Tamps|29:Tlaxcala,Tlax
30:Veracruz,Veracruz de Ignacio de la Llave,Ver|31:Yucatán,Yuc|32:Zacatecas,Zac`,
  IN: `01:Andaman and Nicobar Islands,AN|02:Andhra Pradesh,AP|03:Assam,AS|05:Chandigarh,CH|07:Delhi,NCT of Delhi,DL|09:Gujarat,GJ|10:Haryana,HR
11:Himachal Pradesh,HP|12:Jammu and Kashmir,Jammu & Kashmir,JK|13:Kerala,KL|14:Lakshadweep,LD|16:Maharashtra,MH|17:Manipur,MN
18:Meghalaya,ML|19:Karnataka,KA|20:Nagaland,NL|21:Odisha,Orissa,OD,OR|22:Puducherry,Pondicherry,PY|23:Punjab,PB|24:Rajasthan,RJ
25:Tamil Nadu,TN|26:Tripura,TR|28:West Bengal,WB|29:Sikkim,SK|30:Arunachal Pradesh,AR|31:Mizoram,MZ|33:Goa,GA|34:Bihar,BR
35:Madhya Pradesh,MP|36:Uttar Pradesh,UP|37:Chhattisgarh,CG|38:Jharkhand,JH|39:Uttarakhand,UK|40:Telangana,TS,TG|41:Ladakh,LA`,
};

/** Countries whose places have regions in data/places.tsv.br. */
export const COUNTRIES_WITH_REGIONS = new Set(Object.keys(REGIONS));

let byName: Map<string, Region[]> | undefined;

/**
 * Finds the regions that a text may name, in all countries. Two letters have to be capitals: `in` and `me` are words.
 * @param words one name; otherwise its case and accents do not matter
 */
export function findRegions(words: string): Region[] {
  byName ??= indexRegions();
  const key = toPlaceKey(words);
  const letters = key.replaceAll(' ', '');
  // N.Y. is NY.
  const short = letters.length <= 3 && words.includes('.') ? letters : key;
  if (short.length <= 2 && words !== words.toUpperCase()) return [];
  return byName.get(short) ?? byName.get(key) ?? [];
}

function indexRegions(): Map<string, Region[]> {
  const index = new Map<string, Region[]>();
  for (const [country, lines] of Object.entries(REGIONS)) {
    for (const line of lines.split(/[|\n]/)) {
      const [code = '', names = ''] = line.split(':');
      for (const name of names.split(',')) {
        const key = toPlaceKey(name);
        const existing = index.get(key) ?? [];
        if (existing.some((region) => region.country === country && region.code === code)) continue;
        index.set(key, [...existing, { country, code }]);
      }
    }
  }
  return index;
}
