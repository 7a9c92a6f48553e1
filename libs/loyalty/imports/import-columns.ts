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

/** Headers in English, German, French, Spanish and Dutch, in the form of `normalizeHeader`. */
const HEADERS: Record<ImportField, string> = {
  first_name:
    'firstname first givenname forename vorname rufname prenom nombre nombredepila voornaam roepnaam',
  last_name:
    'lastname last surname familyname nachname familienname zuname nomdefamille apellido apellidos achternaam familienaam',
  email:
    'email emailaddress mail mailaddress emailadresse mailadresse adresseemail adressemail courriel adresseelectronique correo correoelectronico direcciondecorreo direcciondecorreoelectronico emailadres mailadres',
  phone:
    'phone phonenumber telephone telephonenumber mobile mobilephone mobilenumber mobilephonenumber cell cellphone telefon telefonnummer handy handynummer mobil mobilnummer mobiltelefon rufnummer numerodetelephone tel portable telephoneportable numerodeportable telefono numerodetelefono movil telefonomovil celular telefoonnummer telefoon mobiel mobielnummer gsm gsmnummer',
  birthday:
    'birthday birthdate dateofbirth dob geburtstag geburtsdatum gebdatum datedenaissance naissance anniversaire fechadenacimiento nacimiento cumpleanos geboortedatum verjaardag',
  marketing_consent:
    'marketingconsent marketing emailconsent acceptsmarketing newsletter werbung werbeeinwilligung marketingeinwilligung consentementmarketing consentimientomarketing boletin toestemmingmarketing nieuwsbrief',
  sms_consent:
    'smsconsent acceptssms sms smseinwilligung consentementsms consentimientosms toestemmingsms',
  external_id:
    'externalid customerid customernumber customerno memberid membernumber id kundennummer kundennr kundenid mitgliedsnummer numeroclient numerodeclient idclient numerodecliente idcliente klantnummer klantnr klantid lidnummer',
  external_source:
    'externalsource source system quelle herkunft origine origen sistema bron systeem',
  stamps:
    'stamps stampscount stampcount balance points stempel stempelstand stempelanzahl punkte punktestand tampons points solde sellos puntos saldo stempels aantalstempels punten',
  code: 'code cardcode cardnumber barcode kartencode kartennummer strichcode codecarte numerodecarte codebarres codigo codigodetarjeta numerodetarjeta codigodebarras kaartcode kaartnummer streepjescode',
};

const FIELDS_BY_HEADER = new Map(
  IMPORT_FIELDS.flatMap((field) => HEADERS[field].split(' ').map((name) => [name, field] as const)),
);

/** In German, French and Dutch exports the family name beside a first name; alone it is the whole name. */
const AMBIGUOUS_NAMES = new Set(['name', 'nom', 'naam']);

/** The field of a column, or null to ignore it, by header. */
export type MappingRequest = Readonly<Record<string, ImportField | null>>;

export type ColumnsResult =
  | { columns: ImportColumn[]; errors?: never }
  | { columns?: never; errors: Issue[] };

/**
 * Decides which column holds which field: by the mapping, else by its header. Reports two columns for one field
 * instead of choosing one of them.
 */
export function resolveColumns(headers: readonly string[], mapping: MappingRequest): ColumnsResult {
  const errors: Issue[] = Object.keys(mapping)
    .filter((name) => !headers.includes(name))
    .map((name) => ISSUES.column_unknown({ name }));
  errors.push(...findRepeatedHeaders(headers));
  const mapped = new Set(Object.values(mapping));
  const automatic = headers.map((name) => (Object.hasOwn(mapping, name) ? null : findField(name)));
  const hasFirstName = mapped.has('first_name') || automatic.includes('first_name');
  const columns = headers.map((name, i): ImportColumn => {
    if (Object.hasOwn(mapping, name)) return { name, field: mapping[name] ?? null };
    const field = AMBIGUOUS_NAMES.has(normalizeHeader(name))
      ? hasFirstName
        ? 'last_name'
        : 'first_name'
      : (automatic[i] ?? null);
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
export function suggestColumns(headers: readonly string[], hasCard: boolean): ColumnsResult {
  const errors = findRepeatedHeaders(headers);
  if (errors.length > 0) return { errors };
  const { columns = [] } = resolveColumns(headers, {});
  const suggested =
    columns.length > 0 ? columns : headers.map((name) => ({ name, field: findField(name) }));
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
  return FIELDS_BY_HEADER.get(normalizeHeader(header)) ?? null;
}

/** Returns a header without case, accents, spaces and punctuation. */
function normalizeHeader(header: string): string {
  return header
    .normalize('NFKD')
    .replaceAll(/[^\p{L}\p{N}]/gu, '')
    .toLowerCase()
    .replaceAll('ß', 'ss');
}
