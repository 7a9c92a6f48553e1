import fc from 'fast-check';
import { unguardFormulas } from '#platform/kernel/csv.js';
import { normalizeText } from '#platform/kernel/text.js';
import { MARKER, plainText, RecordedValue, type SendContext } from './json.js';
import { emails, externalIds, markedText, phones, which } from './values.js';

/** What a column of a file can hold. */
export const FIELDS = [
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
export type Field = (typeof FIELDS)[number];

/** How spreadsheets call the fields in three languages. */
const HEADERS: Record<Field, readonly [string, string, string]> = {
  first_name: ['first_name', 'Vorname', 'Prénom'],
  last_name: ['Last name', 'Nachname', 'Apellidos'],
  email: ['email', 'E-Mail-Adresse', 'Correo electrónico'],
  phone: ['Phone', 'Handynummer', 'Téléphone'],
  birthday: ['birthday', 'Geburtsdatum', 'Date de naissance'],
  marketing_consent: ['marketing_consent', 'Newsletter', 'Boletín'],
  sms_consent: ['sms_consent', 'SMS', 'Consentement SMS'],
  external_id: ['external_id', 'Kundennummer', 'Numéro client'],
  external_source: ['external_source', 'Quelle', 'Origen'],
  stamps: ['stamps', 'Stempel', 'Tampons'],
  code: ['code', 'Kartencode', 'Code-barres'],
};

const ENCODINGS = ['utf-8', 'utf-16le', 'utf-16be', 'windows-1252'] as const;
type Encoding = (typeof ENCODINGS)[number];

/** What is wrong with a file that is nearly valid. */
const DAMAGES = [
  'an open quote',
  'a cell too many',
  'a header twice',
  'no rows',
  'no bytes',
  'a cut end',
  'a wrong byte',
  'a wrong mark',
  'a mapped column that is missing',
  'a line that is no JSON',
  'a list in a line',
  'a long cell',
  'many columns',
] as const;
type Damage = (typeof DAMAGES)[number];

type Column = { header: string; field: Field | null; isMapped: boolean };
type FileRow = Record<string, unknown> | null;

/** A file of customers, whose values are known only when it is sent. */
export type FileSpec = {
  format: 'csv' | 'ndjson';
  columns: Column[];
  /** By header; null: a blank line. */
  rows: FileRow[];
  encoding: Encoding;
  separator: ',' | ';' | '\t';
  hasMark: boolean;
  lineEnd: '\n' | '\r\n';
  areAllQuoted: boolean;
  namesSeparator: boolean;
  type: string;
  damage: Damage | null;
  /** Where the damage is, from 0 to 1. */
  damagedAt: number;
  /** Imported once more when it is done. */
  again: boolean;
};

/** A row as the store should understand it: its texts by field, without those that are blank. */
export type SentRow = ReadonlyMap<Field, string>;

/**
 * A file as it was sent.
 * @property rows by row number; null: the file is damaged, so that nobody knows
 */
export type SentFile = {
  bytes: Uint8Array<ArrayBuffer>;
  type: string;
  format: FileSpec['format'];
  encoding: Encoding;
  rows: ReadonlyMap<number, SentRow> | null;
  again: boolean;
};

/** An import: its file, and the parameters that fit to it. */
export type Upload = { query: (readonly [string, unknown])[]; file: FileSpec };

/** Mostly valid values: a row has many fields, and one that is invalid refuses it whole. */
function createValues(valid: fc.Arbitrary<unknown>, ...invalid: unknown[]): fc.Arbitrary<unknown> {
  return fc.oneof(
    { weight: 24, arbitrary: valid },
    { weight: 1, arbitrary: fc.constantFrom(...invalid) },
  );
}

const VALUES: Record<Field, fc.Arbitrary<unknown>> = {
  first_name: markedText(100),
  last_name: markedText(100),
  email: createValues(emails, 'p1(at)example.com', 'a@b', '-'),
  phone: createValues(phones, '1,51E+11', '12', 'none'),
  birthday: createValues(
    fc.constantFrom('1990-05-31', '31.12.1990', '1.2.1990', '13/01/1990', '1990-2-3'),
    '1990-02-30',
    '2999-01-01',
    '03/04/1990',
    'May 1990',
  ),
  marketing_consent: createValues(
    fc.constantFrom('ja', 'no', 'x', '1', 'vrai', true, false),
    'perhaps',
  ),
  sms_consent: createValues(fc.constantFrom('yes', 'nein', 'sí', '0', true, false), 'maybe'),
  external_id: externalIds,
  external_source: createValues(fc.constantFrom('till', 'Till', 'crm'), 'not a source'),
  stamps: createValues(fc.oneof(fc.nat({ max: 9 }), fc.constant('3')), '-1', '1001', '2,5', 1.5),
  // Some come up again, and some belong to other customers.
  code: createValues(
    fc.oneof(
      { weight: 4, arbitrary: fc.stringMatching(/^[2-9A-HJ-NP-Z]{8}$/) },
      { weight: 1, arbitrary: fc.constantFrom('ABCD2345', 'abcd2345') },
      { weight: 1, arbitrary: which.map((n) => new RecordedValue('codes', n, false)) },
    ),
    'O0O0O0O0',
    'ABCD',
  ),
};

/** Creates an arbitrary for imports, most of which the store accepts. */
export function createUploadArbitrary(): fc.Arbitrary<Upload> {
  return columns.chain((chosen) =>
    fc
      .record({
        file: createFileArbitrary(chosen),
        cardId: fc.nat({ max: 2 }),
        hasCard: fc.nat({ max: 9 }),
        isDryRun: fc.nat({ max: 2 }),
        dateOrder: fc.constantFrom(null, null, 'dmy', 'mdy'),
      })
      .map(({ file, cardId, hasCard, isDryRun, dateOrder }): Upload => {
        const needsCard = chosen.some(({ field }) => field === 'stamps' || field === 'code');
        const query: (readonly [string, unknown])[] = [];
        if (hasCard < (needsCard ? 9 : 4)) {
          query.push(['card_id', new RecordedValue('cards', cardId, false)]);
        }
        if (isDryRun === 0) query.push(['dry_run', true]);
        if (dateOrder !== null) query.push(['date_order', dateOrder]);
        const mapping = createMapping(chosen, file.damage);
        if (mapping !== null) query.push(['mapping', mapping]);
        return { query, file };
      }),
  );
}

const columns: fc.Arbitrary<Column[]> = fc
  .record({
    others: fc.subarray([...FIELDS], { minLength: 1 }),
    // Without both of these, hardly a row creates anybody.
    isUsual: fc.nat({ max: 9 }).map((n) => n > 0),
    order: fc.nat({ max: FIELDS.length }),
    language: fc.nat({ max: 2 }),
    mapped: fc.subarray([...FIELDS], { maxLength: 2 }),
    hasNote: fc.boolean(),
  })
  .map(({ others, isUsual, order, language, mapped, hasNote }) => {
    const usual: Field[] = isUsual ? ['first_name', 'email'] : [];
    const fields = [...new Set([...usual, ...others])];
    const turned = [...fields.slice(order), ...fields.slice(0, order)];
    const all = turned.map((field): Column => {
      const isMapped = mapped.includes(field);
      const header = isMapped ? `Column of ${field}` : (HEADERS[field][language] ?? field);
      return { header, field, isMapped };
    });
    return hasNote ? [...all, { header: 'Notiz', field: null, isMapped: false }] : all;
  });

function createFileArbitrary(chosen: Column[]): fc.Arbitrary<FileSpec> {
  const cells = chosen.map(({ header, field }) => {
    const values = field === null ? markedText(100) : VALUES[field];
    // Consents and names of existing customers may be blank; most cells are not.
    return [header, fc.option(values, { freq: 6, nil: '' })] as const;
  });
  const row = fc
    .tuple(
      fc.record(Object.fromEntries(cells)) as fc.Arbitrary<Record<string, unknown>>,
      fc.nat({ max: 12 }),
      fc.nat({ max: 5 }),
    )
    .map(([values, person, n]) => (n === 0 ? values : identify(values, chosen, person)));
  return fc.record({
    format: fc.constantFrom('csv', 'csv', 'csv', 'ndjson'),
    columns: fc.constant(chosen),
    rows: fc.array(fc.option<FileRow, null>(row, { freq: 10, nil: null }), {
      minLength: 1,
      maxLength: 6,
    }),
    encoding: fc.constantFrom(...ENCODINGS),
    separator: fc.constantFrom(',', ';', '\t'),
    hasMark: fc.boolean(),
    lineEnd: fc.constantFrom('\n', '\r\n'),
    areAllQuoted: fc.boolean(),
    namesSeparator: fc.nat({ max: 9 }).map((n) => n === 0),
    type: fc.constantFrom('own', 'own', 'application/octet-stream', 'text/plain'),
    damage: fc.oneof(
      { weight: 7, arbitrary: fc.constant(null) },
      { weight: 2, arbitrary: fc.constantFrom(...DAMAGES) },
    ),
    damagedAt: fc.double({ min: 0, max: 1, noNaN: true }),
    again: fc.nat({ max: 2 }).map((n) => n === 0),
  });
}

/** Gives a row the address, number and id of one person, where it has any: by chance they were those of several. */
function identify(
  values: Record<string, unknown>,
  chosen: Column[],
  person: number,
): Record<string, unknown> {
  const identity: Partial<Record<Field, string>> = {
    email: `p${person}@${MARKER}.example`,
    phone: `+49151123456${String(person * 11).padStart(2, '0')}`,
    external_id: `A-${person}`,
  };
  return Object.fromEntries(
    Object.entries(values).map(([header, value]) => {
      const field = chosen.find((column) => column.header === header)?.field;
      const own = field ? identity[field] : undefined;
      return [header, value === '' ? value : (own ?? value)];
    }),
  );
}

function createMapping(chosen: Column[], damage: Damage | null): string | null {
  const mapped = chosen.filter(({ isMapped }) => isMapped);
  const entries = mapped.map(({ header, field }): [string, string | null] => [header, field]);
  if (damage === 'a mapped column that is missing') entries.push(['Missing', 'last_name']);
  return entries.length === 0 ? null : JSON.stringify(Object.fromEntries(entries));
}

/** Renders the file with the values of the store that it is sent to. */
export function renderFile(spec: FileSpec, around: SendContext): SentFile {
  const { damage, damagedAt, format } = spec;
  const rows = spec.rows.map((row) => row && new Map(listCells(spec, row, around)));
  const text = format === 'csv' ? renderCsv(spec, rows) : renderNdjson(spec, rows);
  const { bytes: whole, encoding } = encode(text, spec);
  const bytes = damage === null ? whole : damageBytes(whole, damage, damagedAt);
  const own = format === 'csv' ? 'text/csv' : 'application/x-ndjson';
  const isCsvOnly = spec.type === 'text/plain';
  return {
    bytes,
    type: spec.type === 'own' || (isCsvOnly && format === 'ndjson') ? own : spec.type,
    format,
    encoding,
    rows: damage === null ? listSentRows(spec, rows) : null,
    again: spec.again,
  };
}

type Cell = string | number | boolean;

function listCells(
  { columns: chosen }: FileSpec,
  row: Record<string, unknown>,
  around: SendContext,
): (readonly [string, Cell])[] {
  return chosen.map(({ header }) => {
    const value = row[header];
    const isPlain = typeof value === 'number' || typeof value === 'boolean';
    return [header, isPlain ? value : plainText(value ?? '', around)];
  });
}

/** Lists the rows that are not blank, by their number. */
function listSentRows(
  { columns: chosen, format }: FileSpec,
  rows: (ReadonlyMap<string, Cell> | null)[],
): Map<number, SentRow> {
  const sent = new Map<number, SentRow>();
  for (const [i, row] of rows.entries()) {
    if (row === null) continue;
    const texts = chosen.flatMap(({ header, field }): [Field | null, string][] => {
      const cell = String(row.get(header) ?? '');
      const text = normalizeText(format === 'csv' ? unguardFormulas(cell) : cell);
      return text === '' ? [] : [[field, text]];
    });
    // In NDJSON an object without values is a row too.
    if (texts.length === 0 && format === 'csv') continue;
    const fields = texts.filter((entry): entry is [Field, string] => entry[0] !== null);
    sent.set(format === 'csv' ? i + 2 : i + 1, new Map(fields));
  }
  return sent;
}

function renderCsv(spec: FileSpec, rows: (ReadonlyMap<string, Cell> | null)[]): string {
  const { columns: chosen, separator, lineEnd, areAllQuoted, damage } = spec;
  const quote = (text: string) =>
    areAllQuoted || /[",;\t\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  const headers = chosen.map(({ header }) => header);
  if (damage === 'a header twice') headers.push(headers[0] ?? '');
  if (damage === 'many columns') for (let i = 0; i <= 200; i++) headers.push(`more ${i}`);
  const lines = rows.map((row) => (row === null ? [] : [...row.values()].map(String)));
  if (damage === 'a cell too many') lines.push([...headers, 'more', 'more']);
  if (damage === 'a long cell') lines.push(['x'.repeat(300_000)]);
  const all = damage === 'no rows' ? [headers] : [headers, ...lines];
  return [
    ...(spec.namesSeparator ? [`sep=${separator}`] : []),
    ...all.map((cells) => cells.map(quote).join(separator)),
    ...(damage === 'an open quote' ? ['"open'] : []),
  ].join(lineEnd);
}

function renderNdjson(spec: FileSpec, rows: (ReadonlyMap<string, Cell> | null)[]): string {
  const { damage, lineEnd } = spec;
  const lines = rows.map((row) => (row ? JSON.stringify(Object.fromEntries(row)) : ''));
  if (damage === 'a line that is no JSON') lines.push('{"email":');
  if (damage === 'a list in a line') lines.push('{"email":["p1@example.com"]}', '[1]');
  if (damage === 'a long cell') lines.push(JSON.stringify({ email: 'x'.repeat(300_000) }));
  return damage === 'no rows' ? '' : lines.join(lineEnd);
}

const MARKS = {
  'utf-8': [0xef, 0xbb, 0xbf],
  'utf-16le': [0xff, 0xfe],
  'utf-16be': [0xfe, 0xff],
};

/** Encodes text; as UTF-8 if the encoding cannot write it, and with a mark if it could not be recognised without one. */
function encode(
  text: string,
  { encoding, hasMark }: FileSpec,
): { bytes: Uint8Array<ArrayBuffer>; encoding: Encoding } {
  const isAscii = /^[\0-\x7f]*$/.test(text);
  // Of Windows-1252, what is the same in Latin 1.
  const isLatin = /^[\0-\x7f\xa0-\xff]*$/.test(text);
  if (encoding === 'windows-1252' && isLatin && !isAscii) {
    return { bytes: Uint8Array.from(Buffer.from(text, 'latin1')), encoding };
  }
  const isWide = encoding === 'utf-16le' || encoding === 'utf-16be';
  const chosen = isWide ? encoding : 'utf-8';
  const bytes = Buffer.from(text, isWide ? 'utf16le' : 'utf8');
  if (chosen === 'utf-16be') bytes.swap16();
  const mark = hasMark || (isWide && !isAscii) ? MARKS[chosen] : [];
  return { bytes: Uint8Array.from([...mark, ...bytes]), encoding: chosen };
}

function damageBytes(
  bytes: Uint8Array<ArrayBuffer>,
  damage: Damage,
  at: number,
): Uint8Array<ArrayBuffer> {
  const place = Math.floor(at * Math.max(0, bytes.length - 1));
  switch (damage) {
    case 'no bytes':
      return new Uint8Array();
    case 'a cut end':
      return bytes.slice(0, place);
    case 'a wrong mark':
      return Uint8Array.from([0xfe, 0xff, ...bytes]);
    case 'a wrong byte': {
      const changed = bytes.slice();
      changed[place] = (changed[place] ?? 0) ^ 0xff;
      return changed;
    }
    default:
      return bytes;
  }
}
