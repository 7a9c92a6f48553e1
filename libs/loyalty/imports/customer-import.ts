import type { Actor, EventMeta } from '#platform/kernel/aggregate.js';
import { RejectedError } from '#platform/kernel/errors.js';
import type { FieldIssues } from '#platform/kernel/issues.js';
import type { DateOrder } from './birthdays.js';
import type { ImportColumn } from './import-columns.js';
import type { ImportFormat } from './import-file.js';
import type { Separator } from './text-encoding.js';
import { ISSUES } from '#translations/issues.js';

export const IMPORT_STATES = ['checking', 'ready', 'running', 'done', 'failed', 'undone'] as const;
export type ImportState = (typeof IMPORT_STATES)[number];

/** `undoing` is shown as `running`. */
export type StoredState = ImportState | 'undoing';

export const ROW_STATES = [
  'pending',
  'created',
  'updated',
  'unchanged',
  'failed',
  'undone',
  'refused',
] as const;
export type RowState = (typeof ROW_STATES)[number];

/** How many rows came to which end. */
export type RowCounts = Record<
  'done' | 'created' | 'updated' | 'unchanged' | 'failed' | 'undone' | 'refused',
  number
>;

/** A file of customers that is imported. */
export type CustomerImport = {
  id: number;
  /** Unique among all servers, unlike the id: a history may come from another one. */
  uuid: string;
  accountId: number;
  cardId: number | null;
  state: StoredState;
  dryRun: boolean;
  format: ImportFormat;
  encoding: string;
  separator: Separator | null;
  columns: ImportColumn[];
  dateOrder: DateOrder | null;
  rowsTotal: number;
  counts: RowCounts;
  error: FieldIssues | null;
  actor: Actor;
  createdAt: Date;
  startedAt: Date | null;
  finishedAt: Date | null;
  updatedAt: Date;
  rowsDeletedAt: Date | null;
};

/**
 * Creates what identifies the commands of a row, so that the history tells what the row did (`causationId`), and what
 * the history shows people (`requestId`).
 */
export function createRowIds(
  { id, uuid }: Pick<CustomerImport, 'id' | 'uuid'>,
  row: number,
): { causationId: string; requestId: string } {
  return { causationId: `${uuid}-${row}`, requestId: `import-${id}-${row}` };
}

/** Tells whether an import caused an event, by one of its rows or by taking one back. */
export function isCausedBy(
  { uuid }: Pick<CustomerImport, 'uuid'>,
  { causationId }: EventMeta,
): boolean {
  return causationId?.startsWith(`${uuid}-`) ?? false;
}

/** Starts an import whose check is done. @returns false when it has been started already */
export function startImport({ state }: CustomerImport): boolean {
  if (state === 'running' || state === 'done') return false;
  if (state === 'ready') return true;
  throw new RejectedError(
    { base: [ISSUES.import_not_started({ state: DESCRIPTIONS[state] })] },
    'validation_failed',
    state === 'checking'
      ? 'Wait until its state is ready.'
      : 'Upload the file again to import it again.',
  );
}

/** Asserts that an import is checked, and waits for a start. @param change what it is about to be */
export function assertWaiting(
  { state, rowsDeletedAt }: CustomerImport,
  change: 'changed' | 'discarded',
): void {
  if (state === 'ready' && rowsDeletedAt === null) return;
  throw new RejectedError(
    { base: [ISSUES[`import_not_${change}`]({ state: DESCRIPTIONS[state] })] },
    'validation_failed',
    state === 'checking' ? 'Wait until its state is ready.' : ADVICE[change],
  );
}

const ADVICE = {
  changed: 'Upload the file again.',
  discarded: 'Undo it once its state is done.',
};

/** Undoes an import that is done. @returns false when that has been asked for already */
export function undoImport({ state, startedAt, rowsDeletedAt }: CustomerImport): boolean {
  if (state === 'undoing' || state === 'undone') return false;
  if (rowsDeletedAt !== null) {
    throw new RejectedError({
      base: [ISSUES.import_rows_deleted],
    });
  }
  if (state === 'done' || (state === 'failed' && startedAt !== null)) return true;
  throw new RejectedError(
    { base: [ISSUES.import_nothing_to_undo({ state: DESCRIPTIONS[state] })] },
    'validation_failed',
    'Wait until its state is done.',
  );
}

const DESCRIPTIONS: Record<StoredState, string> = {
  checking: 'still being checked',
  ready: 'not started',
  running: 'still running',
  done: 'done',
  failed: 'failed',
  undoing: 'being undone',
  undone: 'undone',
};
