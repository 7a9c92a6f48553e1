/**
 * pass.json of a store card, as far as this service writes it (Apple: "Wallet Passes", Pass and PassFieldContent).
 * Whatever a phone does not know, it ignores silently.
 */
export type PassJson = {
  formatVersion: 1;
  passTypeIdentifier: string;
  teamIdentifier: string;
  serialNumber: string;
  organizationName: string;
  description: string;
  logoText: string;
  /** `rgb(r, g, b)`, as all colours. */
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
  /** A phone shows it when the value has changed, with the new one in the place of %@. */
  changeMessage?: string;
  dateStyle?: 'PKDateStyleMedium';
  timeStyle?: 'PKDateStyleNone';
  /** Shows the date of `value` itself, not the one that it is where the phone is. */
  ignoresTimeZone?: true;
};

export type PassBarcode = {
  format: 'PKBarcodeFormatQR';
  message: string;
  messageEncoding: 'iso-8859-1';
  altText: string;
};

export type PassPlace = { latitude: number; longitude: number; relevantText: string };

const MOST_LOCATIONS = 10;
const MOST_HEADER_FIELDS = 3;
/** Secondary and auxiliary ones share a row of four. */
const MOST_FRONT_FIELDS = 4;
const SHORTEST_TOKEN = 16;

type Rule = (value: unknown) => string | undefined;
type Keys = Record<string, { rule: Rule; optional?: true }>;

const text: Rule = (value) =>
  typeof value === 'string' && value !== '' ? undefined : 'must be a text';
const only =
  (wanted: unknown): Rule =>
  (value) =>
    value === wanted ? undefined : `must be ${JSON.stringify(wanted)}`;
const matching =
  (pattern: RegExp, message: string): Rule =>
  (value) =>
    typeof value === 'string' && pattern.test(value) ? undefined : message;
const between =
  (least: number, most: number): Rule =>
  (value) =>
    typeof value === 'number' && value >= least && value <= most
      ? undefined
      : `must be from ${least} to ${most}`;
const anything: Rule = () => undefined;
/** Looked into by itself. */
const list: Rule = (value) => (Array.isArray(value) ? undefined : 'must be a list');

const colour: Rule = (value) => {
  const parts = /^rgb\((\d{1,3}), (\d{1,3}), (\d{1,3})\)$/.exec(String(value))?.slice(1) ?? [];
  return parts.length === 3 && parts.every((part) => Number(part) < 256)
    ? undefined
    : 'must be rgb(r, g, b)';
};

const PASS: Keys = {
  formatVersion: { rule: only(1) },
  passTypeIdentifier: { rule: matching(/^pass\./, 'must begin with pass.') },
  teamIdentifier: { rule: matching(/^[A-Z0-9]{10}$/, 'must be ten letters and digits') },
  serialNumber: { rule: text },
  organizationName: { rule: text },
  description: { rule: text },
  logoText: { rule: text },
  backgroundColor: { rule: colour },
  foregroundColor: { rule: colour },
  labelColor: { rule: colour },
  webServiceURL: { rule: matching(/^https:\/\/[^/]/, 'must begin with https://') },
  authenticationToken: {
    rule: (value) =>
      typeof value === 'string' && value.length >= SHORTEST_TOKEN
        ? undefined
        : `must have at least ${SHORTEST_TOKEN} characters`,
  },
  sharingProhibited: { rule: only(true) },
  barcodes: { rule: list },
  locations: { rule: list, optional: true },
  expirationDate: {
    rule: matching(
      /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(Z|[+-]\d\d:\d\d)$/,
      'must be a time with its offset',
    ),
    optional: true,
  },
  voided: { rule: only(true), optional: true },
  storeCard: { rule: anything },
};

const FIELD: Keys = {
  key: { rule: text },
  value: {
    rule: (value) =>
      typeof value === 'string' || Number.isFinite(value) ? undefined : 'must be text or number',
  },
  label: { rule: text, optional: true },
  changeMessage: { rule: matching(/%@/, 'must contain %@'), optional: true },
  dateStyle: { rule: only('PKDateStyleMedium'), optional: true },
  timeStyle: { rule: only('PKDateStyleNone'), optional: true },
  ignoresTimeZone: { rule: only(true), optional: true },
};

const BARCODE: Keys = {
  format: { rule: only('PKBarcodeFormatQR') },
  message: { rule: matching(/^[\x20-\x7e]+$/, 'must be printable ASCII') },
  messageEncoding: { rule: only('iso-8859-1') },
  altText: { rule: text },
};

const PLACE: Keys = {
  latitude: { rule: between(-90, 90) },
  longitude: { rule: between(-180, 180) },
  relevantText: { rule: text },
};

const FIELD_LISTS = [
  'headerFields',
  'primaryFields',
  'secondaryFields',
  'auxiliaryFields',
  'backFields',
] as const;
const STORE_CARD: Keys = Object.fromEntries(FIELD_LISTS.map((name) => [name, { rule: list }]));

/**
 * A phone refuses a whole pass for one fault and does not say which, and it shows too many fields cut off.
 * @returns every fault, beginning with its key; none: the pass is as it should be
 */
export function passFaults(pass: unknown): string[] {
  const faults = keyFaults(pass, PASS, '');
  if (faults.length > 0) return faults;
  const { storeCard, barcodes, locations = [] } = pass as PassJson;
  const shape = keyFaults(storeCard, STORE_CARD, 'storeCard.');
  if (shape.length > 0) return shape;
  const fields = FIELD_LISTS.flatMap((name) =>
    storeCard[name].map((field, i) => ({ field, at: `storeCard.${name}[${i}].` })),
  );
  return [
    ...fields.flatMap(({ field, at }) => keyFaults(field, FIELD, at)),
    ...barcodes.flatMap((barcode, i) => keyFaults(barcode, BARCODE, `barcodes[${i}].`)),
    ...locations.flatMap((place, i) => keyFaults(place, PLACE, `locations[${i}].`)),
    ...fieldFaults(fields.map(({ field }) => field)),
    ...roomFaults(storeCard),
    ...(locations.length > MOST_LOCATIONS
      ? [`locations: ${locations.length} are more than ${MOST_LOCATIONS}`]
      : []),
  ];
}

function fieldFaults(fields: PassField[]): string[] {
  const keys = fields.map(({ key }) => key);
  const twice = new Set(keys.filter((key, i) => keys.indexOf(key) !== i));
  const telling = fields.filter(({ changeMessage }) => changeMessage !== undefined);
  return [
    ...[...twice].map((key) => `storeCard: two fields have the key ${key}`),
    // With two changes at once a phone shows neither text.
    ...(telling.length > 1 ? ['storeCard: changeMessage on more than one field'] : []),
  ];
}

function roomFaults(card: PassJson['storeCard']): string[] {
  const { headerFields, primaryFields, secondaryFields, auxiliaryFields } = card;
  const faults: string[] = [];
  if (headerFields.length > MOST_HEADER_FIELDS) {
    faults.push(`storeCard.headerFields: more than ${MOST_HEADER_FIELDS}`);
  }
  if (secondaryFields.length + auxiliaryFields.length > MOST_FRONT_FIELDS) {
    faults.push(`storeCard: more than ${MOST_FRONT_FIELDS} secondary and auxiliary fields`);
  }
  // It would be printed over the stamps.
  if (primaryFields.length > 0) faults.push('storeCard.primaryFields: must be empty');
  return faults;
}

function keyFaults(value: unknown, keys: Keys, at: string): string[] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return [`${at.slice(0, -1) || 'pass'}: must be an object`];
  }
  const unknown = Object.keys(value)
    .filter((key) => !Object.hasOwn(keys, key))
    .map((key) => `${at}${key}: is unknown`);
  const wrong = Object.entries(keys).flatMap(([key, { rule, optional }]) => {
    const given = (value as Record<string, unknown>)[key];
    if (given === undefined) return optional ? [] : [`${at}${key}: is missing`];
    const fault = rule(given);
    return fault === undefined ? [] : [`${at}${key}: ${fault}`];
  });
  return [...unknown, ...wrong];
}
