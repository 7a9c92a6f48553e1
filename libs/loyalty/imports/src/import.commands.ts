import { promisify } from 'node:util';
import { deflateRaw } from 'node:zlib';
import { Injectable } from '@nestjs/common';
import { Command, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import { Pool } from 'pg';
import { getNow } from '#kernel/clock.js';
import type { CommandContext } from '#kernel/aggregate.js';
import { Config } from '#configuration/config.js';
import { InvalidFieldsError, RejectedError, UnavailableError } from '#kernel/errors.js';
import { createId } from '#kernel/randomness.js';
import { normalizeNumber } from '#kernel/text.js';
import { IdTakenError, withNewId } from '#database/ids.js';
import { CapOverrides } from '#event-store/commands/cap-overrides.service.js';
import { checkCap } from '#event-store/port/caps.js';
import { AuditedWrites } from '#event-store/commands/audited-writes.service.js';
import { assertOpenForEnrolment } from '#stamping/customer-card.js';
import { TemplatesService } from '#stamping/templates.service.js';
import { findDateOrder, type DateOrder, type DateOrderResult } from './birthdays.js';
import { startImport, undoImport, type CustomerImport } from './customer-import.js';
import { toImportJson, type ImportJson, type ImportQuery } from './import.dto.js';
import { importCap, ImportRecord, importTable } from './import.entity.js';
import {
  listFieldsOfCards,
  resolveColumns,
  suggestColumns,
  type ColumnsResult,
  type ImportColumn,
  type MappingRequest,
} from './import-columns.js';
import { createFileError, readFile, type ImportFile, type ImportFormat } from './import-file.js';
import { ImportQueue } from './import-queue.service.js';
import { ImportRows } from './import-rows.service.js';
import { ImportsService } from './imports.service.js';

/** Names the quota of rows in `es.cap_overrides`. */
export const IMPORT_ROWS_PER_DAY = 'import_rows_per_day';

const MAX_UNFINISHED_IMPORTS = 10;
/** Files that one process holds at once, of which it reads one at a time. */
const MAX_FILES = 8;

const compress = promisify(deflateRaw);

export class CreateImport extends Command<ImportJson> {
  constructor(
    readonly context: CommandContext,
    readonly upload: { bytes: Buffer; format: ImportFormat },
    readonly options: ImportQuery,
    /** Whether somebody looks at the columns before they count, so that those of a file nobody knows may be missing. */
    readonly isDraft = false,
  ) {
    super();
  }
}

@CommandHandler(CreateImport)
export class CreateImportHandler implements ICommandHandler<CreateImport> {
  private fileCount = 0;
  private lastRead: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly writes: AuditedWrites,
    private readonly templates: TemplatesService,
    private readonly rows: ImportRows,
    private readonly queue: ImportQueue,
    private readonly overrides: CapOverrides,
    private readonly pool: Pool,
    private readonly config: Config,
  ) {}

  /** @throws InvalidFieldsError for a file that cannot be imported as a whole */
  async execute(command: CreateImport): Promise<ImportJson> {
    const { context, upload, options, isDraft } = command;
    const { card_id: cardId } = options;
    if (cardId !== null) {
      assertOpenForEnrolment(await this.templates.get(context.accountId, cardId), getNow());
    }
    const file = await this.readInTurn(upload);
    if (file.rows.length === 0) throw createFileError('The file has no rows after its header');
    const columns = isDraft
      ? getColumns(suggestColumns(file.headers, cardId !== null))
      : chooseColumns(file, options.mapping ?? {});
    const fieldsOfCards = listFieldsOfCards(columns);
    if (cardId === null && fieldsOfCards.length > 0) {
      const message = `is required, because the file has ${fieldsOfCards.join(' and ')}`;
      throw new InvalidFieldsError({ card_id: [message] });
    }
    const dateOrder =
      options.date_order ?? (isDraft ? findOrder(file, columns) : chooseDateOrder(file, columns));
    const compressed = await compress(upload.bytes, { level: 1 });
    const inserted = await withNewId(this.pool, importTable.table, (id) => {
      const now = getNow();
      const created: CustomerImport = {
        id,
        uuid: createId(),
        accountId: context.accountId,
        cardId,
        state: 'checking',
        dryRun: options.dry_run,
        format: upload.format,
        encoding: file.encoding,
        separator: file.separator,
        columns,
        dateOrder,
        rowsTotal: file.rows.length,
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
    this.queue.wake();
    return inserted;
  }

  /** Reads one file after another: the rows of a large one take several times its size. */
  private async readInTurn({ bytes, format }: CreateImport['upload']): Promise<ImportFile> {
    if (this.fileCount === MAX_FILES) {
      throw new UnavailableError('Too many files are being read at once');
    }
    this.fileCount++;
    const read = this.lastRead.then(() => readFile(bytes, format));
    this.lastRead = read.catch(() => undefined);
    try {
      return await read;
    } finally {
      this.fileCount--;
    }
  }

  private async insert(
    created: CustomerImport,
    sealedFile: Buffer,
    context: CommandContext,
  ): Promise<ImportJson> {
    const { id, accountId } = created;
    const { importRowsPerDay } = this.config.limits;
    const maxRows = await this.overrides.getMax(IMPORT_ROWS_PER_DAY, accountId, importRowsPerDay);
    return this.writes.write(context, async (transaction) => {
      const { manager } = transaction;
      const query = (text: string, values: unknown[]) => manager.query<unknown>(text, values);
      const cap = { kind: importCap, owner: accountId, id, max: MAX_UNFINISHED_IMPORTS };
      await checkCap(query, cap);
      // Under the lock of the cap, so that two files at once do not both get the rest.
      await assertRowsLeft(query, created, maxRows);
      const inserted = await query(
        `insert into imports (id, uuid, account_id, card_id, state, dry_run, format, encoding, separator, columns,
           date_order, file, rows_total, actor, created_at, updated_at, due_at)
         values ($1, $2, $3, $4, 'checking', $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $14, now())
         on conflict do nothing returning id`,
        [
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
      );
      const isNew = (inserted as unknown[]).length === 1;
      if (!isNew && !transaction.isRepeated) throw new IdTakenError(importTable.table, id);
      if (isNew) {
        const subject = { import_id: id, rows: created.rowsTotal, dry_run: created.dryRun };
        await transaction.audit({ accountIds: [accountId], type: 'import.created', subject });
      }
      return toImportJson(created);
    });
  }
}

/** @throws RejectedError when the rows of the last 24 hours and these come to more than the maximum */
async function assertRowsLeft(
  query: (text: string, values: unknown[]) => Promise<unknown>,
  { id, accountId, rowsTotal }: CustomerImport,
  maxRows: number,
): Promise<void> {
  const [row] = (await query(
    `select coalesce(sum(rows_total), 0)::int as used from imports
     where account_id = $1 and created_at > now() - interval '1 day' and id <> $2`,
    [accountId, id],
  )) as { used: number }[];
  const left = Math.max(0, maxRows - (row?.used ?? 0));
  if (rowsTotal <= left) return;
  throw new RejectedError(
    {
      base: [
        `The file has ${rowsTotal} rows, and this store may import ${left} more today, of ${maxRows} in 24 hours`,
      ],
    },
    'quota_exceeded',
    'Import the rest tomorrow, or ask whoever runs the service for a larger quota.',
  );
}

type Rows = Pick<ImportFile, 'rows'>;

function chooseColumns({ headers }: ImportFile, mapping: MappingRequest): ImportColumn[] {
  return getColumns(resolveColumns(headers, mapping));
}

/** @throws InvalidFieldsError */
export function getColumns({ columns, errors }: ColumnsResult): ImportColumn[] {
  if (errors) throw new InvalidFieldsError({ mapping: errors });
  return columns;
}

/** Finds the order of day and month, or null where the dates do not show it. */
function findOrder(file: Rows, columns: ImportColumn[]): DateOrder | null {
  return readDateOrder(file, columns).order ?? null;
}

function readDateOrder({ rows }: Rows, columns: ImportColumn[]): DateOrderResult {
  const at = columns.findIndex(({ field }) => field === 'birthday');
  if (at < 0) return { order: null };
  return findDateOrder(
    rows.map(({ row, cells }) => ({ row, text: normalizeNumber(cells[at] ?? '') })),
  );
}

/** @throws InvalidFieldsError where the dates do not show their order */
export function chooseDateOrder(file: Rows, columns: ImportColumn[]): DateOrder | null {
  const { order, error } = readDateOrder(file, columns);
  if (error !== undefined) {
    const name = columns.find(({ field }) => field === 'birthday')?.name ?? '';
    throw new InvalidFieldsError({ birthday: [`in the column ${name} ${error}`] });
  }
  return order;
}

/** Changes imports that exist, and lets a dispatcher go on with them. */
@Injectable()
export class ImportChanges {
  constructor(
    private readonly writes: AuditedWrites,
    private readonly imports: ImportsService,
    private readonly queue: ImportQueue,
  ) {}

  /** Changes an import once: repeated, the request gets the import as it is. */
  async change(
    context: CommandContext,
    id: number,
    {
      type,
      decide,
      change,
    }: {
      type: string;
      decide: (current: CustomerImport) => boolean;
      change: (current: CustomerImport) => Partial<ImportRecord>;
    },
  ): Promise<ImportJson> {
    const { accountId } = context;
    const changed = await this.writes.write(context, async (transaction) => {
      const { manager } = transaction;
      const current = await this.imports.lock(manager, accountId, id);
      if (!decide(current)) return toImportJson(current);
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
    this.queue.wake();
    return changed;
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
  constructor(private readonly changes: ImportChanges) {}

  /** Rows that failed in the check are done; the others are counted again as they are applied. */
  execute({ context, id }: StartImport): Promise<ImportJson> {
    return this.changes.change(context, id, {
      type: 'import.started',
      decide: startImport,
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
