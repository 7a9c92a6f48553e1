import { promisify } from 'node:util';
import { deflateRaw } from 'node:zlib';
import { Injectable } from '@nestjs/common';
import { Command, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import { Pool } from 'pg';
import { getNow } from '#platform/kernel/clock.js';
import type { CommandContext } from '#platform/kernel/aggregate.js';
import { InvalidFieldsError } from '#platform/kernel/errors.js';
import { getOwnerKey } from '#platform/database/database-waits.js';
import { FairQueue } from '#platform/kernel/fair-queue.js';
import { createId } from '#platform/kernel/randomness.js';
import { normalizeNumber } from '#platform/kernel/text.js';
import { query } from '#platform/database/connection.js';
import { IdTakenError, withNewId } from '#platform/database/ids.js';
import {
  AuditedWrites,
  type AuditedTransaction,
} from '#platform/event-store/commands/audited-writes.service.js';
import { assertOpenForEnrolment } from '#loyalty/stamping/customer-card.js';
import { TemplatesService } from '#loyalty/stamping/templates.service.js';
import { findDateOrder, type DateCell, type DateOrder } from './birthdays.js';
import { startImport, undoImport, type CustomerImport } from './customer-import.js';
import { toImportJson, type ImportJson, type ImportQuery } from './import.dto.js';
import { ImportRecord, importTable } from './import.entity.js';
import {
  listFieldsOfCards,
  resolveColumns,
  suggestColumns,
  type ColumnsResult,
  type ImportColumn,
  type MappingRequest,
} from './import-columns.js';
import { createFileError } from './file-error.js';
import { scanFile, type FileRow, type ImportFile, type ImportFormat } from './import-file.js';
import { ImportLimits } from './import-limits.service.js';
import { ImportRows } from './import-rows.service.js';
import { ImportsService } from './imports.service.js';
import { locateIssue } from '#platform/kernel/issues.js';
import { ISSUES } from '#translations/issues.js';

/** Stores share the one file that is read at a time, which takes a core. */
const READING = { concurrency: 1, maxWaiting: 7, waitMs: 60_000 };

/** Longer than any phone number. */
const MAX_SAMPLE_LENGTH = 64;
/** Longer than any date. */
const MAX_DATE_LENGTH = 64;

const compress = promisify(deflateRaw);

export class CreateImport extends Command<ImportJson> {
  constructor(
    readonly context: CommandContext,
    readonly upload: { bytes: Buffer; format: ImportFormat; encoding: string | null },
    readonly options: ImportQuery,
    /**
     * For somebody who looks at the columns before they count, so that those of a file nobody knows may be missing: the only
     * card of the store, which a file with stamps then is for; null: there are none or several.
     */
    readonly draft: { onlyCardId: number | null } | null = null,
  ) {
    super();
  }
}

@CommandHandler(CreateImport)
export class CreateImportHandler implements ICommandHandler<CreateImport> {
  private readonly reading = new FairQueue(READING);

  constructor(
    private readonly writes: AuditedWrites,
    private readonly templates: TemplatesService,
    private readonly rows: ImportRows,
    private readonly limits: ImportLimits,
    private readonly pool: Pool,
  ) {}

  /** @throws InvalidFieldsError for a file that cannot be imported as a whole */
  async execute(command: CreateImport): Promise<ImportJson> {
    const { context, upload, options, draft } = command;
    const { card_id: chosenId } = options;
    if (chosenId !== null) {
      assertOpenForEnrolment(await this.templates.get(context.accountId, chosenId), getNow());
    }
    const { bytes, format, encoding } = upload;
    const scan = (takeRow: (row: FileRow) => void) =>
      this.reading.run(getOwnerKey(context.accountId), () =>
        scanFile(bytes, format, encoding, takeRow),
      );
    const samples: string[] = [];
    const file = await scan(({ cells }) => addSamples(samples, cells));
    if (file.rowsTotal === 0) throw createFileError(ISSUES.file_without_rows);
    const possibleId = chosenId ?? draft?.onlyCardId ?? null;
    const columns = draft
      ? getColumns(suggestColumns(file.headers, possibleId !== null, samples))
      : chooseColumns(file, options.mapping ?? {}, samples);
    const fieldsOfCards = listFieldsOfCards(columns);
    const cardId = fieldsOfCards.length > 0 ? possibleId : chosenId;
    if (cardId === null && fieldsOfCards.length > 0) {
      const issue = ISSUES.card_required_for_fields({ fields: fieldsOfCards.join(' and ') });
      throw new InvalidFieldsError({ card_id: [issue] });
    }
    const dates: DateCell[] = [];
    const birthdayAt = findBirthdayColumn(columns);
    if (options.date_order === null && birthdayAt >= 0) {
      await scan((row) => dates.push(toDateCell(row, birthdayAt)));
    }
    const dateOrder =
      options.date_order ??
      (draft ? (findDateOrder(dates).order ?? null) : chooseDateOrder(dates, columns));
    const compressed = await compress(bytes, { level: 1 });
    return withNewId(this.pool, importTable.table, (id) => {
      const now = getNow();
      const created: CustomerImport = {
        id,
        uuid: createId(),
        accountId: context.accountId,
        cardId,
        state: 'checking',
        dryRun: options.dry_run,
        format,
        encoding: file.encoding,
        separator: file.separator,
        columns,
        dateOrder,
        rowsTotal: file.rowsTotal,
        counts: { done: 0, created: 0, updated: 0, unchanged: 0, failed: 0, undone: 0, refused: 0 },
        error: null,
        actor: context.actor,
        createdAt: now,
        startedAt: null,
        finishedAt: null,
        updatedAt: now,
        rowsDeletedAt: null,
      };
      return this.insert(created, this.rows.sealFile(id, compressed), context);
    });
  }

  private async insert(
    created: CustomerImport,
    sealedFile: Buffer,
    context: CommandContext,
  ): Promise<ImportJson> {
    const { id, accountId } = created;
    const maxRows = await this.limits.findMaxRows(accountId);
    return this.writes.write(context, async (transaction) => {
      const { manager } = transaction;
      await this.limits.assertWithin(manager, created, { isTrial: created.dryRun, maxRows });
      const inserted = await query(manager, {
        text: `insert into imports (id, uuid, account_id, card_id, state, dry_run, format, encoding, separator, columns,
           date_order, file, rows_total, actor, created_at, updated_at, due_at)
         values ($1, $2, $3, $4, 'checking', $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $14, now())
         on conflict do nothing returning id`,
        values: [
          id,
          created.uuid,
          accountId,
          created.cardId,
          created.dryRun,
          created.format,
          created.encoding,
          created.separator,
          JSON.stringify(created.columns),
          created.dateOrder,
          sealedFile,
          created.rowsTotal,
          JSON.stringify(created.actor),
          created.createdAt,
        ],
      });
      const isNew = inserted.length === 1;
      if (!isNew && !transaction.isRepeated) throw new IdTakenError(importTable.table, id);
      if (isNew) {
        const subject = { import_id: id, rows: created.rowsTotal, dry_run: created.dryRun };
        await transaction.audit({ accountIds: [accountId], type: 'import.created', subject });
      }
      return toImportJson(created);
    });
  }
}

function chooseColumns(
  { headers }: ImportFile,
  mapping: MappingRequest,
  samples: readonly string[],
): ImportColumn[] {
  return getColumns(resolveColumns(headers, mapping, samples));
}

/** Keeps the beginning of the first text in each column. */
function addSamples(samples: string[], cells: readonly string[]): void {
  for (const [i, cell] of cells.entries()) {
    if (cell !== '') samples[i] ??= cell.slice(0, MAX_SAMPLE_LENGTH);
  }
}

/** @throws InvalidFieldsError */
export function getColumns({ columns, errors }: ColumnsResult): ImportColumn[] {
  if (errors) throw new InvalidFieldsError({ mapping: errors });
  return columns;
}

/** @returns -1 when there is none */
function findBirthdayColumn(columns: ImportColumn[]): number {
  return columns.findIndex(({ field }) => field === 'birthday');
}

function toDateCell({ row, cells }: FileRow, at: number): DateCell {
  return { row, text: normalizeNumber((cells[at] ?? '').slice(0, MAX_DATE_LENGTH)) };
}

/** Lists the birthdays of rows, as far as the order of their day and month shows in them. */
export function listDateCells(rows: FileRow[], columns: ImportColumn[]): DateCell[] {
  const at = findBirthdayColumn(columns);
  return at < 0 ? [] : rows.map((row) => toDateCell(row, at));
}

/** @throws InvalidFieldsError where the dates do not show their order */
export function chooseDateOrder(dates: DateCell[], columns: ImportColumn[]): DateOrder | null {
  const { order, error } = findDateOrder(dates);
  if (error !== undefined) {
    const name = columns[findBirthdayColumn(columns)]?.name ?? '';
    throw new InvalidFieldsError({ birthday: [locateIssue(`in the column ${name} `, error)] });
  }
  return order;
}

/** Changes imports that exist, and lets a dispatcher go on with them. */
@Injectable()
export class ImportChanges {
  constructor(
    private readonly writes: AuditedWrites,
    private readonly imports: ImportsService,
  ) {}

  /** Changes an import once: repeated, the request gets the import as it is. */
  async change(
    context: CommandContext,
    id: number,
    {
      type,
      decide,
      check,
      change,
    }: {
      type: string;
      decide: (current: CustomerImport) => boolean;
      check?: (transaction: AuditedTransaction, current: CustomerImport) => Promise<void>;
      change: (current: CustomerImport) => Partial<ImportRecord>;
    },
  ): Promise<ImportJson> {
    const { accountId } = context;
    return this.writes.write(context, async (transaction) => {
      const { manager } = transaction;
      const current = await this.imports.lock(manager, accountId, id);
      if (!decide(current)) return toImportJson(current);
      await check?.(transaction, current);
      const now = getNow();
      await manager.update(
        ImportRecord,
        { id },
        // TypeORM's type of a JSON column with an open record in it.
        { ...change(current), actor: context.actor as never, updated_at: now, due_at: now },
      );
      await transaction.audit({ accountIds: [accountId], type, subject: { import_id: id } });
      return toImportJson(await this.imports.lock(manager, accountId, id));
    });
  }
}

export class StartImport extends Command<ImportJson> {
  constructor(
    readonly context: CommandContext,
    readonly id: number,
  ) {
    super();
  }
}

@CommandHandler(StartImport)
export class StartImportHandler implements ICommandHandler<StartImport> {
  constructor(
    private readonly changes: ImportChanges,
    private readonly limits: ImportLimits,
  ) {}

  /** Rows that failed in the check are done; the others are counted again as they are applied. */
  async execute({ context, id }: StartImport): Promise<ImportJson> {
    const maxRows = await this.limits.findMaxRows(context.accountId);
    return this.changes.change(context, id, {
      type: 'import.started',
      decide: startImport,
      check: ({ manager }, current) =>
        this.limits.assertWithin(manager, current, { isTrial: false, maxRows }),
      change: ({ counts }) => ({
        state: 'running',
        rows_done: counts.failed,
        created: 0,
        updated: 0,
        unchanged: 0,
        started_at: getNow(),
      }),
    });
  }
}

export class UndoImport extends Command<ImportJson> {
  constructor(
    readonly context: CommandContext,
    readonly id: number,
  ) {
    super();
  }
}

@CommandHandler(UndoImport)
export class UndoImportHandler implements ICommandHandler<UndoImport> {
  constructor(private readonly changes: ImportChanges) {}

  /** Counts from the beginning: the rows that changed nothing are done. */
  execute({ context, id }: UndoImport): Promise<ImportJson> {
    return this.changes.change(context, id, {
      type: 'import.undone',
      decide: undoImport,
      change: ({ rowsTotal, counts: { created, updated } }) => ({
        state: 'undoing',
        rows_done: rowsTotal - created - updated,
        finished_at: null,
      }),
    });
  }
}

export const importHandlers = [CreateImportHandler, StartImportHandler, UndoImportHandler];
