/** The officially assigned codes of ISO 3166-1 alpha-2. */
const COUNTRIES: ReadonlySet<string> = new Set(
  `AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR BS BT BV BW BY BZ
   CA CC CD CF CG CH CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM DO DZ EC EE EG EH ER ES ET FI FJ FK FM FO FR
   GA GB GD GE GF GG GH GI GL GM GN GP GQ GR GS GT GU GW GY HK HM HN HR HT HU ID IE IL IM IN IO IQ IR IS IT
   JE JM JO JP KE KG KH KI KM KN KP KR KW KY KZ LA LB LC LI LK LR LS LT LU LV LY MA MC MD ME MF MG MH MK ML MM MN MO
   MP MQ MR MS MT MU MV MW MX MY MZ NA NC NE NF NG NI NL NO NP NR NU NZ OM PA PE PF PG PH PK PL PM PN PR PS PT PW PY
   QA RE RO RS RU RW SA SB SC SD SE SG SH SI SJ SK SL SM SN SO SR SS ST SV SX SY SZ TC TD TF TG TH TJ TK TL TM TN TO
   TR TT TV TW TZ UA UG UM US UY UZ VA VC VE VG VI VN VU WF WS YE YT ZA ZM ZW`.split(/\s+/),
);

/** Reads a country code in any case; undefined if there is no such country. */
export function parseCountry(text: string): string | undefined {
  // Only ASCII letters: ß would become SS.
  const code = /^[a-z]{2}$/i.test(text) ? text.toUpperCase() : '';
  return COUNTRIES.has(code) ? code : undefined;
}

/** Returns the country that a language tag names, such as AT of de-AT; null if it names none. */
export function findCountryOfLocale(locale: string): string | null {
  return parseCountry(new Intl.Locale(locale).region ?? '') ?? null;
}

/** Has what Node.js 20 calls `timeZones`, and later versions `getTimeZones`. */
type Region = Intl.Locale & { timeZones?: string[]; getTimeZones?: () => string[] | undefined };

let countriesByTimeZone: ReadonlyMap<string, string> | undefined;

/** Returns the country that a time zone lies in, such as DE for Europe/Berlin; null if it lies in none, such as UTC. */
export function findCountryOfTimeZone(timeZone: string): string | null {
  countriesByTimeZone ??= new Map([...COUNTRIES].flatMap(listTimeZonesOfCountry));
  return (
    countriesByTimeZone.get(timeZone) ??
    countriesByTimeZone.get(findCanonicalTimeZone(timeZone) ?? '') ??
    null
  );
}

/** Finds the name by which a list has the time zone, of which this may be an alias; undefined if there is none. */
export function findCanonicalTimeZone(timeZone: string): string | undefined {
  try {
    return new Intl.DateTimeFormat('en', { timeZone }).resolvedOptions().timeZone;
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

function listTimeZonesOfCountry(region: string): [timeZone: string, region: string][] {
  const locale: Region = new Intl.Locale('und', { region });
  const zones = locale.getTimeZones?.() ?? locale.timeZones ?? [];
  return zones.map((zone) => [zone, region]);
}

/** Lists all countries with their names in a language, in the order of these. */
export function listCountries(locale: string): { code: string; name: string }[] {
  const names = new Intl.DisplayNames(locale, { type: 'region' });
  return [...COUNTRIES]
    .map((code) => ({ code, name: names.of(code) ?? code }))
    .sort((a, b) => a.name.localeCompare(b.name, locale));
}
