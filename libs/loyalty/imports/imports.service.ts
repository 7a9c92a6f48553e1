import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { LessThan, Repository, type EntityManager } from 'typeorm';
import { NotFoundError } from '#platform/kernel/errors.js';
import { toFieldCodes, toFieldMessages } from '#platform/kernel/issues.js';
import { awaitQuery } from '#platform/database/connection.js';
import type { PageRange } from '#platform/http/page.js';
import type { CustomerImport, RowState } from './customer-import.js';
import { toImportJson, type ImportJson, type ImportRowJson } from './import.dto.js';
import { ImportRecord, toImport } from './import.entity.js';
import { ImportRows, type StoredRow } from './import-rows.service.js';

const DOWNLOAD_BATCH = 1_000;

/** Reads imports for the API. */
@Injectable()
export class ImportsService {
  constructor(
    @InjectRepository(ImportRecord) private readonly imports: Repository<ImportRecord>,
    private readonly rows: ImportRows,
  ) {}

  /** Lists imports, newest first. */
  async list(accountId: number, { after, limit }: PageRange): Promise<ImportJson[]> {
    const before = after?.[0];
    const rows = await awaitQuery(
      this.imports.find({
        where: { account_id: accountId, ...(before !== undefined && { id: LessThan(before) }) },
        order: { id: 'DESC' },
        take: limit,
      }),
    );
    return rows.map((row) => toImportJson(toImport(row)));
  }

  /** @throws NotFoundError */
  async get(accountId: number, id: number): Promise<CustomerImport> {
    const row = await awaitQuery(this.imports.findOneBy({ id, account_id: accountId }));
    if (!row) throw new NotFoundError('Import');
    return toImport(row);
  }

  /** Locks the import against changes by others until the transaction ends. @throws NotFoundError */
  async lock(manager: EntityManager, accountId: number, id: number): Promise<CustomerImport> {
    const row = await manager.findOne(ImportRecord, {
      where: { id, account_id: accountId },
      lock: { mode: 'for_no_key_update' },
    });
    if (!row) throw new NotFoundError('Import');
    return toImport(row);
  }

  /** Lists rows in the order of the file. @param state null: in any */
  async listRows(
    { id, columns }: CustomerImport,
    state: RowState | null,
    range: PageRange,
  ): Promise<ImportRowJson[]> {
    const rows = await this.rows.list(id, state, range);
    return rows.map((row) => toRowJson(row, columns));
  }

  /** Lists rows that failed, with their issues. */
  listFailedRows({ id }: CustomerImport, range: PageRange): Promise<StoredRow[]> {
    return this.rows.list(id, 'failed', range);
  }

  /** Lists all rows for a download. */
  async listAllRows({ id }: CustomerImport, state: RowState | null): Promise<StoredRow[]> {
    const all: StoredRow[] = [];
    for (let isLast = false; !isLast;) {
      const last = all.at(-1)?.row;
      const after = last === undefined ? null : [last];
      const rows = await this.rows.list(id, state, { after, limit: DOWNLOAD_BATCH });
      all.push(...rows);
      isLast = rows.length < DOWNLOAD_BATCH;
    }
    return all;
  }
}

function toRowJson(
  { row, state, errors, cells, customerId, customerCardId }: StoredRow,
  columns: CustomerImport['columns'],
): ImportRowJson {
  return {
    row,
    status: state,
    errors: errors && toFieldMessages(errors),
    error_codes: errors && toFieldCodes(errors),
    data: cells && Object.fromEntries(columns.map(({ name }, i) => [name, cells[i] ?? ''])),
    customer_id: customerId,
    customer_card_id: customerCardId,
  };
}
