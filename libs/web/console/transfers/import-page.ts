import { BYTE_ORDER_MARK, renderCsvLine } from '#platform/kernel/csv.js';
import type { CustomerImport, StoredState } from '#loyalty/imports/customer-import.js';
import {
  IMPORT_FIELDS,
  listIgnoredOfCards,
  type ImportColumn,
  type MappingRequest,
} from '#loyalty/imports/import-columns.js';
import type { Localization, Translations } from '#translations/translations.js';

type Texts = Translations['transfers'];

export type Mood = '' | 'good' | 'bad';

/** An import in the list. */
export type ImportLine = {
  path: string;
  at: string;
  state: string;
  mood: Mood;
  result: string;
};

export type Choice = { value: string; text: string };

/** A column of the file with the field that it holds. */
export type ColumnField = { name: string; label: string; value: string; hint: string };

const MOODS: Record<StoredState, Mood> = {
  checking: '',
  ready: '',
  running: '',
  undoing: '',
  done: 'good',
  failed: 'bad',
  undone: '',
};

/** Describes the state of an import. @param state as stored, or as the API shows it */
export function describeImportState(state: StoredState, t: Texts): { state: string; mood: Mood } {
  return { state: t.states[state], mood: MOODS[state] };
}

/** Tells whether somebody is at work on the import, so that the page changes by itself. */
export function isMoving(state: StoredState): state is 'checking' | 'running' | 'undoing' {
  return state === 'checking' || state === 'running' || state === 'undoing';
}

/** Tells whether the rows of an import can be taken back. */
export function canUndoImport({ state, startedAt, rowsDeletedAt }: CustomerImport): boolean {
  return rowsDeletedAt === null && (state === 'done' || (state === 'failed' && startedAt !== null));
}

/** Lists the numbers of an import with their labels; those that are zero are left out, except the rows. */
export function listCounts(
  { state, counts, rowsTotal }: CustomerImport,
  { t, locale }: Localization,
): { label: string; value: string }[] {
  const texts = t.transfers;
  const format = new Intl.NumberFormat(locale);
  const entries: [string, number][] = [
    [texts.newCustomers, counts.created],
    [texts.knownCustomers, counts.updated],
    [texts.unchanged, counts.unchanged],
    [texts.wrong, counts.failed],
    [texts.takenBack, counts.undone],
    [texts.leftAsIs, counts.refused],
  ];
  const listed = isMoving(state) ? [] : entries.filter(([, count]) => count > 0);
  return [[texts.rows, rowsTotal] as const, ...listed].map(([label, count]) => ({
    label,
    value: format.format(count),
  }));
}

/** Says what a start would do. */
export function describeStart(
  { counts, columns, cardId }: CustomerImport,
  card: { text: string; welcomeStamps: number } | undefined,
  localization: Localization,
): { text: string; canStart: boolean } {
  const { transfers: t } = localization.t;
  const count = counts.created + counts.updated;
  if (count === 0 && counts.unchanged === 0) return { text: t.startNothing, canStart: false };
  const sentences = [];
  if (count > 0) sentences.push(t.startText({ count }));
  if (count > 0 && card) sentences.push(t.startCard({ name: card.text }));
  if (count > 0 && card && card.welcomeStamps > 0)
    sentences.push(t.startWelcome({ count: card.welcomeStamps }));
  if (counts.unchanged > 0) sentences.push(t.startUnchanged({ count: counts.unchanged }));
  if (counts.failed > 0) sentences.push(t.startWithout({ count: counts.failed }));
  for (const { name } of listIgnoredOfCards(columns)) {
    sentences.push(cardId === null ? t.columnNeedsCard({ name }) : t.columnIgnored({ name }));
  }
  return { text: sentences.join(' '), canStart: count > 0 };
}

const MAX_EXAMPLES = 3;
const MAX_EXAMPLE_LENGTH = 40;
const COLUMN = 'column_';

/** Lists the columns as fields of a form, with examples of what they hold. */
export function listColumnFields(
  columns: CustomerImport['columns'],
  rows: readonly (Record<string, string> | null)[],
  t: Texts,
): ColumnField[] {
  return columns.map(({ name, field }, i) => {
    const examples = rows
      .map((row) => row?.[name] ?? '')
      .filter((text) => text !== '')
      .slice(0, MAX_EXAMPLES)
      .map((text) =>
        text.length > MAX_EXAMPLE_LENGTH ? `${text.slice(0, MAX_EXAMPLE_LENGTH)}…` : text,
      );
    return {
      name: `${COLUMN}${i}`,
      label: name === '' ? `${i + 1}` : name,
      value: field ?? '',
      hint: examples.length > 0 ? t.examples({ examples: examples.join(', ') }) : t.noExamples,
    };
  });
}

export function listFieldChoices(t: Texts): Choice[] {
  return [
    { value: '', text: t.fields.ignore },
    ...IMPORT_FIELDS.map((field) => ({ value: field, text: t.fields[field] })),
  ];
}

/**
 * Reads which field each column holds from a form; a column that it lacks stays as it is.
 * @param isCardNew whether a card is chosen for the first time, so that columns count that needed one
 */
export function readMapping(
  columns: CustomerImport['columns'],
  form: Readonly<Record<string, string | undefined>>,
  isCardNew = false,
): MappingRequest {
  const chosen = columns.map(({ name, field }, i): ImportColumn => {
    const value = form[`${COLUMN}${i}`];
    if (value === undefined) return { name, field };
    return { name, field: IMPORT_FIELDS.find((candidate) => candidate === value) ?? null };
  });
  const added = isCardNew ? listIgnoredOfCards(chosen) : [];
  return Object.fromEntries([...chosen, ...added].map(({ name, field }) => [name, field]));
}

/** Tells whether no column can find a customer again, so that every row has an error. */
export function lacksIdentity(columns: CustomerImport['columns']): boolean {
  return !columns.some(
    ({ field }) => field === 'email' || field === 'phone' || field === 'external_id',
  );
}

/** The encodings that somebody may choose for a file, of those that spreadsheets write. */
export const UPLOAD_ENCODINGS = [
  'utf-8',
  'windows-1252',
  'windows-1250',
  'windows-1251',
  'windows-1253',
  'windows-1254',
  'windows-1255',
  'windows-1256',
  'windows-1257',
  'macintosh',
] as const;

export function listEncodingChoices({ encodings: t }: Texts): Choice[] {
  return [
    { value: '', text: t.auto },
    ...UPLOAD_ENCODINGS.map((name) => ({ value: name, text: t[name] })),
  ];
}

/** A file that shows what an import understands. */
export const SAMPLE_FILE =
  BYTE_ORDER_MARK +
  [
    ['first_name', 'last_name', 'email', 'phone', 'birthday', 'marketing_consent', 'stamps'],
    // Numbers with a plus would be formulas to a spreadsheet.
    ['Anna', 'Berg', 'anna@example.com', '0049 171 3920001', '1990-05-31', 'yes', 4],
    ['Ömer', 'Kaya', null, '0049 171 3920002', null, 'no', 7],
    ['نور', 'الهاشمي', 'nour@example.com', null, '2001-12-01', null, 0],
  ]
    .map((cells) => renderCsvLine(cells))
    .join('');
