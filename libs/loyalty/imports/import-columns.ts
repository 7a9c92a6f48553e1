import type { Issue } from '#platform/kernel/issues.js';
import { ISSUES } from '#translations/issues.js';

/** What a column of a file can hold. */
export const IMPORT_FIELDS = [
  'first_name',
  'last_name',
  'email',
  'phone',
  'birthday',
  'marketing_consent',
  'sms_consent',
  'external_id',
  'external_source',
  'stamps',
  'code',
] as const;

export type ImportField = (typeof IMPORT_FIELDS)[number];

/** The columns of a file in their order; null: the column is ignored. */
export type ImportColumn = { name: string; field: ImportField | null };

/** The fields of which at least one is needed to find a customer again. */
const IDENTIFYING: readonly ImportField[] = ['email', 'phone', 'external_id'];

/** Of a card, so they need one that the customers are enrolled on. */
const FIELDS_OF_CARDS: readonly ImportField[] = ['stamps', 'code'];

/** Headers that a message lists. */
const MAX_SHOWN = 20;

/**
 * Headers in English, German, French, Spanish and Dutch, and those of the exports of shops, tills, newsletters and address
 * books, in the form of `normalizeHeader`. A file may have several columns for a field: the first group of which it has one
 * decides, and two of one group are ambiguous. Nothing here says no where a field says yes, such as `do_not_email`.
 */
const HEADERS: Record<ImportField, readonly string[]> = {
  first_name: [
    'firstname first givenname forename vorname rufname prenom nombre nombredepila nombres voornaam roepnaam fname customerfirstname contactfirstname',
    'billingfirstname defaultaddressfirstname',
  ],
  last_name: [
    'lastname last surname familyname nachname familienname zuname nomdefamille apellido apellidos achternaam familienaam lname customerlastname contactlastname',
    'billinglastname defaultaddresslastname',
  ],
  email: [
    'email emailaddress mail mailaddress emailadresse mailadresse adresseemail adressemail adressedemessagerie courriel adresseelectronique adressedecourriel correo correoelectronico direcciondecorreo direcciondecorreoelectronico emailadres mailadres customeremail contactemail',
    'useremail email1 email1value email1address primaryemail primaryemailaddress emailprimary mainemail privateemail emailprivat privatemail emailprive',
    'billingemail workemail emailwork emailgeschaeftlich emailgeschaftlich',
  ],
  phone: [
    'mobile mobilephone mobilenumber mobilephonenumber mobilephone1 cell cellphone cellnumber handy handynummer mobil mobilnummer mobiltelefon telefonmobil mobiltelefonnummer portable telephoneportable telephonemobile telmobile telportable mobiletelephone numerodeportable numerodemobile movil telefonomovil telmovil celular telefonocelular mobiel mobielnummer mobieletelefoon telefoonmobiel gsm gsmnummer phonemobile handynr mobilnr 06nummer customermobile contactmobile',
    'phone phonenumber telephone telephonenumber telefon telefonnummer telefonnr rufnummer numerodetelephone ndetelephone nodetelephone ntelephone notelephone tel telnr telno telefono numerodetelefono ntelefono telefoonnummer telefoonnr telefoon customerphone contactphone',
    'whatsapp phone1 phone1value primaryphone mainphone phoneprimary phone1number telefon1 telephone1 telefono1 telefoon1',
    'billingphone defaultaddressphone homephone phonehome telefonprivat telefonoparticular telephonedomicile privenummer landline landlinenumber festnetz festnetznummer telefonfestnetz telephonefixe telefonofijo vastenummer workphone businessphone',
  ],
  birthday: [
    'birthday birthdate dateofbirth dob geburtstag geburtsdatum gebdatum gebdat gebam geborenam datedenaissance naissance datenaissance ddn anniversaire fechadenacimiento fechanacimiento nacimiento cumpleanos geboortedatum geboortedag verjaardag customerdateofbirth billingbirthdate',
  ],
  marketing_consent: [
    'marketingconsent marketing emailconsent acceptsmarketing acceptsemailmarketing emailmarketing emailmarketingconsent emailmarketingstatus emailsubscriptionstatus marketingoptin emailoptin newsletteroptin newsletter newslettersubscription werbung werbeeinwilligung marketingeinwilligung newslettereinwilligung consentementmarketing accepteemailmarketing infolettre consentimientomarketing aceptamarketing boletin toestemmingmarketing nieuwsbrief',
  ],
  sms_consent: [
    'smsconsent acceptssms acceptssmsmarketing smsmarketing smsmarketingconsent smsmarketingstatus smssubscriptionstatus smsoptin smseinwilligung consentementsms acceptesms consentimientosms aceptasms toestemmingsms',
    'sms',
  ],
  external_id: [
    'externalid extid referenceid customerid customernumber customerno customercode customerref memberid membernumber memberno loyaltynumber kundennummer kundennr kundenid mitgliedsnummer mitgliedsnr numeroclient numerodeclient noclient nclient codeclient idclient numeroadherent numerodecliente idcliente codigocliente codigodecliente nsocio klantnummer klantnr klantid klantcode lidnummer',
    'id internalid userid contactid squarecustomerid recordid profileid',
  ],
  external_source: [
    'externalsource system quelle herkunft origine origen sistema bron systeem',
    'source',
  ],
  stamps: [
    'stamps stampscount stampcount balance points loyaltypoints pointsbalance stempel stempelstand stempelanzahl punkte punktestand treuepunkte tampons points solde soldepoints pointsdefidelite sellos puntos saldo saldodepuntos stempels aantalstempels punten spaarpunten',
  ],
  code: [
    'code cardcode cardnumber barcode kartencode kartennummer strichcode codecarte numerodecarte codebarres codigo codigodetarjeta numerodetarjeta codigodebarras kaartcode kaartnummer streepjescode',
  ],
};

type Recognized = { field: ImportField; rank: number };

const RECOGNIZED = new Map(
  IMPORT_FIELDS.flatMap((field) =>
    HEADERS[field].flatMap((names, rank) =>
      names.split(' ').map((name): [string, Recognized] => [name, { field, rank }]),
    ),
  ),
);

/** The rank of a column by what is in it, not by its header. */
const PHONE_BY_CONTENT: Recognized = { field: 'phone', rank: 0 };
const MIN_PHONE_DIGITS = 7;

/** In German, French and Dutch exports the family name beside a first name; alone it is the whole name. */
const AMBIGUOUS_NAMES = new Set(['name', 'nom', 'naam']);

/** The field of a column, or null to ignore it, by header. */
export type MappingRequest = Readonly<Record<string, ImportField | null>>;

export type ColumnsResult =
  | { columns: ImportColumn[]; errors?: never }
  | { columns?: never; errors: Issue[] };

/**
 * Decides which column holds which field: by the mapping, else by its header. Reports two columns for one field
 * instead of choosing one of them, unless the header of one says it better.
 * @param samples the first text in each column
 */
export function resolveColumns(
  headers: readonly string[],
  mapping: MappingRequest,
  samples: readonly string[] = [],
): ColumnsResult {
  const errors: Issue[] = Object.keys(mapping)
    .filter((name) => !headers.includes(name))
    .map((name) => ISSUES.column_unknown({ name }));
  errors.push(...findRepeatedHeaders(headers));
  const mapped = new Set(Object.values(mapping));
  const automatic = omitOutranked(
    headers.map((name, i) => (Object.hasOwn(mapping, name) ? null : recognize(name, samples[i]))),
  );
  const hasFirstName = mapped.has('first_name') || automatic.includes('first_name');
  const hasLastName = mapped.has('last_name') || automatic.includes('last_name');
  const wholeName = !hasFirstName ? 'first_name' : hasLastName ? null : 'last_name';
  const columns = headers.map((name, i): ImportColumn => {
    if (Object.hasOwn(mapping, name)) return { name, field: mapping[name] ?? null };
    const field = AMBIGUOUS_NAMES.has(normalizeHeader(name)) ? wholeName : (automatic[i] ?? null);
    return { name, field: field !== null && mapped.has(field) ? null : field };
  });
  for (const field of IMPORT_FIELDS) {
    const names = columns.filter((column) => column.field === field).map(({ name }) => name);
    if (names.length > 1) {
      errors.push(ISSUES.column_ambiguous({ field, names: names.join(' or ') }));
    }
  }
  const has = (field: ImportField) => columns.some((column) => column.field === field);
  if (errors.length === 0 && !IDENTIFYING.some(has)) {
    errors.push(
      ISSUES.column_missing({
        fields: IDENTIFYING.join(', '),
        headers: headers.slice(0, MAX_SHOWN).join(', '),
      }),
    );
  }
  return errors.length > 0 ? { errors } : { columns };
}

/**
 * Decides which column holds which field as far as the headers tell, for somebody who looks at it before it counts. Of two
 * columns for one field the first has it. @param hasCard whether the customers are enrolled on a card
 */
export function suggestColumns(
  headers: readonly string[],
  hasCard: boolean,
  samples: readonly string[] = [],
): ColumnsResult {
  const errors = findRepeatedHeaders(headers);
  if (errors.length > 0) return { errors };
  const { columns = [] } = resolveColumns(headers, {}, samples);
  const recognized = omitOutranked(headers.map((name, i) => recognize(name, samples[i])));
  const suggested =
    columns.length > 0
      ? columns
      : headers.map((name, i) => ({ name, field: recognized[i] ?? null }));
  const chosen = new Set<ImportField>();
  return {
    columns: suggested.map(({ name, field }) => {
      const isUsable =
        field !== null && !chosen.has(field) && (hasCard || !FIELDS_OF_CARDS.includes(field));
      if (!isUsable) return { name, field: null };
      chosen.add(field);
      return { name, field };
    }),
  };
}

/** Lists the fields of the file that only a card can have. */
export function listFieldsOfCards(columns: readonly ImportColumn[]): ImportField[] {
  return FIELDS_OF_CARDS.filter((field) => columns.some((column) => column.field === field));
}

/** Lists the columns that are ignored although their headers name a field of cards, which no other column holds. */
export function listIgnoredOfCards(
  columns: readonly ImportColumn[],
): { name: string; field: ImportField }[] {
  const mappedFields = listFieldsOfCards(columns);
  return columns.flatMap(({ name, field }) => {
    const recognised = field === null ? findField(name) : null;
    if (
      recognised === null ||
      !FIELDS_OF_CARDS.includes(recognised) ||
      mappedFields.includes(recognised)
    )
      return [];
    mappedFields.push(recognised);
    return [{ name, field: recognised }];
  });
}

function findRepeatedHeaders(headers: readonly string[]): Issue[] {
  const repeated = headers.filter((name, i) => name !== '' && headers.indexOf(name) < i);
  return [...new Set(repeated)].map((name) => ISSUES.column_repeated({ name }));
}

function findField(header: string): ImportField | null {
  return RECOGNIZED.get(normalizeHeader(header))?.field ?? null;
}

/** Recognizes a column by its header. Brevo calls the column of phone numbers SMS, as others call that of consents. */
function recognize(header: string, sample = ''): Recognized | null {
  const recognized = RECOGNIZED.get(normalizeHeader(header)) ?? null;
  const holdsNumber = sample.replaceAll(/\P{Nd}/gu, '').length >= MIN_PHONE_DIGITS;
  return recognized?.field === 'sms_consent' && holdsNumber ? PHONE_BY_CONTENT : recognized;
}

/** Leaves each field to the columns of its best rank. */
function omitOutranked(columns: readonly (Recognized | null)[]): (ImportField | null)[] {
  return columns.map((column) => {
    const isOutranked = columns.some(
      (other) => other !== null && other.field === column?.field && other.rank < column.rank,
    );
    return isOutranked ? null : (column?.field ?? null);
  });
}

/** Returns a header without case, accents, spaces and punctuation. */
function normalizeHeader(header: string): string {
  return header
    .normalize('NFKD')
    .replaceAll(/[^\p{L}\p{N}]/gu, '')
    .toLowerCase()
    .replaceAll('ß', 'ss');
}
