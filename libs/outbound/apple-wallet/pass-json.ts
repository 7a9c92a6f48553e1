import { BARCODE_FORMATS, findBarcodeIssue } from '#loyalty/cards/barcode.js';
import type { BarcodeFormat } from '#loyalty/cards/card.events.js';

/**
 * pass.json of a store card, as far as this service writes it (Apple: "Wallet Passes", Pass and PassFieldContent).
 * A phone ignores unknown keys silently.
 */
export type PassJson = {
  formatVersion: 1;
  passTypeIdentifier: string;
  teamIdentifier: string;
  serialNumber: string;
  organizationName: string;
  description: string;
  /** Beside the logo; missing where the logo says it. */
  logoText?: string;
  /** `rgb(r, g, b)`, like all colours. */
  backgroundColor: string;
  foregroundColor: string;
  labelColor: string;
  webServiceURL: string;
  authenticationToken: string;
  sharingProhibited: true;
  barcodes: PassBarcode[];
  locations?: PassPlace[];
  /** With seconds and offset. */
  expirationDate?: string;
  voided?: true;
  storeCard: {
    headerFields: PassField[];
    primaryFields: PassField[];
    secondaryFields: PassField[];
    auxiliaryFields: PassField[];
    backFields: PassField[];
  };
};

export type PassField = {
  key: string;
  value: string | number;
  label?: string;
  /** Shown in place of `value` on phones: it may contain links. On the back only. */
  attributedValue?: string;
  /** A phone shows it when the value has changed, with the new value in place of %@. */
  changeMessage?: string;
  dateStyle?: 'PKDateStyleMedium';
  timeStyle?: 'PKDateStyleNone';
  /** Shows the date of `value` itself, without converting it to the phone's time zone. */
  ignoresTimeZone?: true;
};

export const BARCODE_TYPES: Record<BarcodeFormat, PassBarcode['format']> = {
  qr: 'PKBarcodeFormatQR',
  aztec: 'PKBarcodeFormatAztec',
  pdf417: 'PKBarcodeFormatPDF417',
  code128: 'PKBarcodeFormatCode128',
};

export type PassBarcode = {
  format:
    | 'PKBarcodeFormatQR'
    | 'PKBarcodeFormatAztec'
    | 'PKBarcodeFormatPDF417'
    | 'PKBarcodeFormatCode128';
  message: string;
  messageEncoding: 'iso-8859-1';
  altText: string;
};

export type PassPlace = { latitude: number; longitude: number; relevantText: string };

const MAX_LOCATIONS = 10;
const MAX_HEADER_FIELDS = 3;
/** Secondary and auxiliary ones share a row of four. */
const MAX_FRONT_FIELDS = 4;
const MIN_TOKEN_LENGTH = 16;

type Rule = (value: unknown) => string | undefined;
type Schema = Record<string, { rule: Rule; optional?: true }>;

const nonEmptyString: Rule = (value) =>
  typeof value === 'string' && value !== '' ? undefined : 'must be a string';
const exactly =
  (expected: unknown): Rule =>
  (value) =>
    value === expected ? undefined : `must be ${JSON.stringify(expected)}`;
const matching =
  (pattern: RegExp, message: string): Rule =>
  (value) =>
    typeof value === 'string' && pattern.test(value) ? undefined : message;
const between =
  (min: number, max: number): Rule =>
  (value) =>
    typeof value === 'number' && value >= min && value <= max
      ? undefined
      : `must be from ${min} to ${max}`;
const anything: Rule = () => undefined;
/** Checks the type only; the elements are checked separately. */
const anyList: Rule = (value) => (Array.isArray(value) ? undefined : 'must be a list');

const colour: Rule = (value) => {
  const parts = /^rgb\((\d{1,3}), (\d{1,3}), (\d{1,3})\)$/.exec(String(value))?.slice(1) ?? [];
  return parts.length === 3 && parts.every((part) => Number(part) < 256)
    ? undefined
    : 'must be rgb(r, g, b)';
};

const PASS: Schema = {
  formatVersion: { rule: exactly(1) },
  passTypeIdentifier: { rule: matching(/^pass\./, 'must begin with pass.') },
  teamIdentifier: { rule: matching(/^[A-Z0-9]{10}$/, 'must be ten letters and digits') },
  serialNumber: { rule: nonEmptyString },
  organizationName: { rule: nonEmptyString },
  description: { rule: nonEmptyString },
  logoText: { rule: nonEmptyString, optional: true },
  backgroundColor: { rule: colour },
  foregroundColor: { rule: colour },
  labelColor: { rule: colour },
  webServiceURL: { rule: matching(/^https:\/\/[^/]/, 'must begin with https://') },
  authenticationToken: {
    rule: (value) =>
      typeof value === 'string' && value.length >= MIN_TOKEN_LENGTH
        ? undefined
        : `must have at least ${MIN_TOKEN_LENGTH} characters`,
  },
  sharingProhibited: { rule: exactly(true) },
  barcodes: { rule: anyList },
  locations: { rule: anyList, optional: true },
  expirationDate: {
    rule: matching(
      /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(Z|[+-]\d\d:\d\d)$/,
      'must be a time with its offset',
    ),
    optional: true,
  },
  voided: { rule: exactly(true), optional: true },
  storeCard: { rule: anything },
};

const FIELD: Schema = {
  key: { rule: nonEmptyString },
  value: {
    rule: (value) =>
      typeof value === 'string' || Number.isFinite(value)
        ? undefined
        : 'must be a string or a number',
  },
  label: { rule: nonEmptyString, optional: true },
  attributedValue: {
    rule: matching(/^<a href="https?:[^"<>]+">[^<>]+<\/a>$/, 'must be a link'),
    optional: true,
  },
  changeMessage: { rule: matching(/%@/, 'must contain %@'), optional: true },
  dateStyle: { rule: exactly('PKDateStyleMedium'), optional: true },
  timeStyle: { rule: exactly('PKDateStyleNone'), optional: true },
  ignoresTimeZone: { rule: exactly(true), optional: true },
};

const BARCODE: Schema = {
  format: {
    rule: (value) =>
      findFormat(value) === undefined
        ? `must be one of ${Object.values(BARCODE_TYPES)}`
        : undefined,
  },
  message: { rule: nonEmptyString },
  messageEncoding: { rule: exactly('iso-8859-1') },
  altText: { rule: nonEmptyString },
};

const PLACE: Schema = {
  latitude: { rule: between(-90, 90) },
  longitude: { rule: between(-180, 180) },
  relevantText: { rule: nonEmptyString },
};

const FIELD_LISTS = [
  'headerFields',
  'primaryFields',
  'secondaryFields',
  'auxiliaryFields',
  'backFields',
] as const;
const STORE_CARD: Schema = Object.fromEntries(FIELD_LISTS.map((name) => [name, { rule: anyList }]));

/**
 * Finds everything that a phone would refuse. It refuses the whole pass for one error and does not name it, and it cuts
 * off fields that do not fit.
 * @returns every error, beginning with its key; none: the pass is valid
 */
export function findPassErrors(pass: unknown): string[] {
  const errors = findSchemaErrors(pass, PASS, '');
  if (errors.length > 0) return errors;
  const { storeCard, barcodes, locations = [] } = pass as PassJson;
  const storeCardErrors = findSchemaErrors(storeCard, STORE_CARD, 'storeCard.');
  if (storeCardErrors.length > 0) return storeCardErrors;
  const fields = FIELD_LISTS.flatMap((name) =>
    storeCard[name].map((field, i) => ({ field, at: `storeCard.${name}[${i}].` })),
  );
  return [
    ...fields.flatMap(({ field, at }) => findSchemaErrors(field, FIELD, at)),
    ...barcodes.flatMap((barcode, i) => findBarcodeErrors(barcode, `barcodes[${i}].`)),
    ...locations.flatMap((place, i) => findSchemaErrors(place, PLACE, `locations[${i}].`)),
    ...findFieldErrors(fields.map(({ field }) => field)),
    ...findOverflowErrors(storeCard),
    ...(locations.length > MAX_LOCATIONS
      ? [`locations: ${locations.length} are more than ${MAX_LOCATIONS}`]
      : []),
  ];
}

function findBarcodeErrors(barcode: PassBarcode, at: string): string[] {
  const errors = findSchemaErrors(barcode, BARCODE, at);
  const format = findFormat(barcode?.format);
  if (errors.length > 0 || format === undefined) return errors;
  const error = findBarcodeIssue(format, barcode.message);
  return error === undefined ? [] : [`${at}message: ${error.message}`];
}

function findFormat(type: unknown): BarcodeFormat | undefined {
  return BARCODE_FORMATS.find((format) => BARCODE_TYPES[format] === type);
}

function findFieldErrors(fields: PassField[]): string[] {
  const keys = fields.map(({ key }) => key);
  const duplicateKeys = new Set(keys.filter((key, i) => keys.indexOf(key) !== i));
  const withChangeMessage = fields.filter(({ changeMessage }) => changeMessage !== undefined);
  return [
    ...[...duplicateKeys].map((key) => `storeCard: two fields have the key ${key}`),
    // A phone that gets two changes at once shows neither message.
    ...(withChangeMessage.length > 1 ? ['storeCard: changeMessage on more than one field'] : []),
  ];
}

function findOverflowErrors(card: PassJson['storeCard']): string[] {
  const { headerFields, primaryFields, secondaryFields, auxiliaryFields } = card;
  const errors: string[] = [];
  if (headerFields.length > MAX_HEADER_FIELDS) {
    errors.push(`storeCard.headerFields: more than ${MAX_HEADER_FIELDS}`);
  }
  if (secondaryFields.length + auxiliaryFields.length > MAX_FRONT_FIELDS) {
    errors.push(`storeCard: more than ${MAX_FRONT_FIELDS} secondary and auxiliary fields`);
  }
  // A primary field would be printed over the stamps.
  if (primaryFields.length > 0) errors.push('storeCard.primaryFields: must be empty');
  return errors;
}

function findSchemaErrors(value: unknown, schema: Schema, path: string): string[] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return [`${path.slice(0, -1) || 'pass'}: must be an object`];
  }
  const unknownKeys = Object.keys(value)
    .filter((key) => !Object.hasOwn(schema, key))
    .map((key) => `${path}${key}: is unknown`);
  const invalidKeys = Object.entries(schema).flatMap(([key, { rule, optional }]) => {
    const entry = (value as Record<string, unknown>)[key];
    if (entry === undefined) return optional ? [] : [`${path}${key}: is missing`];
    const error = rule(entry);
    return error === undefined ? [] : [`${path}${key}: ${error}`];
  });
  return [...unknownKeys, ...invalidKeys];
}
