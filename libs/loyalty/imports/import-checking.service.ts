import { promisify } from 'node:util';
import { inflateRaw } from 'node:zlib';
import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { getNowMs } from '#platform/kernel/clock.js';
import { getLocalDay } from '#platform/kernel/zoned-time.js';
import type { Job } from '#platform/database/job-queue.js';
import { StoreRegions } from '#loyalty/customers/store-regions.service.js';
import type { StoreRegion } from '#loyalty/customers/customer.js';
import {
  CustomerMatches,
  EMPTY_MATCH,
  type Match,
  type RowPeople,
} from './customer-matches.service.js';
import type { CustomerImport } from './customer-import.js';
import { readFile, type FileRow } from './import-file.js';
import { ImportPreview, type KnownRow } from './import-preview.service.js';
import { ImportQueue, type QueuedImport } from './import-queue.service.js';
import { readEntry, type ImportEntry } from './import-row.dto.js';
import { ImportRows, type NewRow } from './import-rows.service.js';
import { listRowValues } from './row-values.js';
import { ISSUES } from '#translations/issues.js';
import type { FieldIssues } from '#platform/kernel/issues.js';

const BATCH_SIZE = 500;

const decompress = promisify(inflateRaw);

const NO_PEOPLE: RowPeople = { claims: [], customerIds: [] };
const FAILED = { state: 'failed', customerId: null, expected: null } as const;

/** A row that can be applied, as far as is known before. */
type CheckedRow = FileRow & { people: RowPeople; entry: ImportEntry };

/** What the rows before have said: a second row about one customer is an error, because their order has no meaning. */
type EarlierRows = { rowsByKey: Map<string, number>; rowsByCustomer: Map<number, number> };

/** Checks the rows of an import, and stores them one by one. */
@Injectable()
export class ImportChecking {
  constructor(
    private readonly pool: Pool,
    private readonly rows: ImportRows,
    private readonly queue: ImportQueue,
    private readonly regions: StoreRegions,
    private readonly matches: CustomerMatches,
    private readonly previews: ImportPreview,
  ) {}

  /**
   * Checks all rows, until the signal aborts. Done again after a process was killed, it replaces what is stored. An import
   * whose columns were chosen anew has its rows already, and no file.
   */
  async check(job: Job<QueuedImport>, checked: CustomerImport, signal: AbortSignal): Promise<void> {
    const { id, accountId } = checked;
    const { rows: files } = await this.pool.query<{ file: Buffer | null }>({
      name: 'imports_file',
      text: 'select file from imports where id = $1',
      values: [id],
    });
    const sealed = files[0]?.file ?? null;
    const rows = await this.readRows(checked, sealed);
    const region = await this.regions.get(accountId);
    const earlierRows: EarlierRows = { rowsByKey: new Map(), rowsByCustomer: new Map() };
    for (let at = 0; at < rows.length; at += BATCH_SIZE) {
      if (signal.aborted) return this.queue.endSlice(job);
      if (!(await this.queue.extendLease(job))) return;
      const batch = rows.slice(at, at + BATCH_SIZE);
      const results = await this.checkBatch(checked, region, batch, earlierRows);
      if (sealed) await this.rows.insert(id, results);
      else await this.rows.replaceChecks(id, results);
    }
    await this.queue.finishCheck(job);
  }

  private async readRows(
    { id, format, encoding }: CustomerImport,
    sealed: Buffer | null,
  ): Promise<FileRow[]> {
    if (!sealed) return this.rows.listCells(id);
    const bytes = (await decompress(this.rows.openFile(id, sealed))) as Buffer;
    return (await readFile(bytes, format, encoding)).rows;
  }

  private async checkBatch(
    checked: CustomerImport,
    region: StoreRegion,
    batch: FileRow[],
    earlierRows: EarlierRows,
  ): Promise<NewRow[]> {
    const { accountId, columns, dateOrder } = checked;
    const valuesOfRows = batch.map(({ cells }) => listRowValues(cells, columns, region.country));
    const people = await this.matches.findPeople(accountId, valuesOfRows);
    const valid: CheckedRow[] = [];
    const failed: NewRow[] = [];
    for (const [place, fileRow] of batch.entries()) {
      const { entry, errors } = readEntry(fileRow.cells, columns, dateOrder);
      const peopleOfRow = people[place] ?? NO_PEOPLE;
      if (entry) valid.push({ ...fileRow, people: peopleOfRow, entry });
      else failed.push({ ...fileRow, ...FAILED, errors, people: peopleOfRow });
    }
    const matches = await this.matches.find(
      accountId,
      region,
      valid.map(({ entry }) => entry),
    );
    const matched = valid.map(({ entry, ...fileRow }, i) => {
      const match = matches[i] ?? EMPTY_MATCH;
      const repetition = findRepetition(fileRow.row, match, earlierRows);
      const errors = findRowIssues(entry, match, region) ?? repetition;
      const existing = match.customers.length === 1 ? match.customers[0] : undefined;
      const knownRow: KnownRow | undefined =
        !errors && existing ? { existing, match, entry } : undefined;
      return { fileRow, errors, customerId: existing?.id ?? null, knownRow };
    });
    const previews = await this.previews.preview(
      checked,
      region,
      checked.dryRun ? matched.flatMap(({ knownRow }) => knownRow ?? []) : [],
    );
    const results = matched.map(({ fileRow, errors: rowIssues, customerId, knownRow }): NewRow => {
      const preview = knownRow && previews.get(knownRow);
      const errors = preview && 'errors' in preview ? preview.errors : rowIssues;
      if (errors) return { ...fileRow, ...FAILED, errors, customerId };
      const willChange = preview && 'willChange' in preview && preview.willChange;
      const outcome = knownRow ? (willChange ? 'updated' : 'unchanged') : 'created';
      const expected = checked.dryRun ? outcome : null;
      return { ...fileRow, state: 'pending', errors, customerId, expected };
    });
    return [...failed, ...results];
  }
}

/** Finds why a row cannot be applied; null: it can. */
export function findRowIssues(
  { changes, code }: ImportEntry,
  { customers, codeHolderId }: Pick<Match, 'customers' | 'codeHolderId'>,
  { timeZone }: StoreRegion,
): FieldIssues | null {
  if (customers.length > 1) {
    const ids = customers.map(({ id }) => id).sort((a, b) => a - b);
    return { base: [ISSUES.row_of_different_customers({ ids: ids.join(', ') })] };
  }
  const [customer] = customers;
  const errors: FieldIssues = {};
  if (!customer) {
    if (changes.firstName === undefined) errors['first_name'] = [ISSUES.first_name_missing];
    if (!changes.email && !changes.phone) {
      errors['base'] = [ISSUES.contact_missing];
    }
  }
  if (changes.birthday && changes.birthday > getLocalDay(timeZone, getNowMs())) {
    errors['birthday'] = [ISSUES.in_future];
  }
  if (code !== null && codeHolderId !== null && codeHolderId !== customer?.id) {
    errors['code'] = [ISSUES.card_code_of_other];
  }
  return Object.keys(errors).length > 0 ? errors : null;
}

/**
 * Finds an earlier row about the same customer. One with errors counts too: the next time it may have none, because a
 * row after it has created the customer, and the same file would change something.
 */
function findRepetition(
  row: number,
  { keys, customers }: Match,
  earlierRows: EarlierRows,
): FieldIssues | null {
  // It is about nobody, and says so each time.
  if (customers.length > 1) return null;
  const earlier =
    keys
      .map((key) => earlierRows.rowsByKey.get(key))
      .find((earlierRow) => earlierRow !== undefined) ??
    customers
      .map(({ id }) => earlierRows.rowsByCustomer.get(id))
      .find((earlierRow) => earlierRow !== undefined);
  if (earlier !== undefined) return { base: [ISSUES.row_repeated({ row: earlier })] };
  for (const key of keys) earlierRows.rowsByKey.set(key, row);
  for (const { id } of customers) earlierRows.rowsByCustomer.set(id, row);
  return null;
}
