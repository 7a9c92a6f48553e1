import { Command, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import { getNow } from '#platform/kernel/clock.js';
import type { CommandContext } from '#platform/kernel/aggregate.js';
import { InvalidFieldsError } from '#platform/kernel/errors.js';
import { query } from '#platform/database/connection.js';
import {
  AuditedWrites,
  type AuditedTransaction,
} from '#platform/event-store/commands/audited-writes.service.js';
import { assertOpenForEnrolment } from '#loyalty/stamping/customer-card.js';
import { TemplatesService } from '#loyalty/stamping/templates.service.js';
import type { DateOrder } from './birthdays.js';
import { assertWaiting, type CustomerImport } from './customer-import.js';
import { chooseDateOrder, getColumns, listDateCells } from './import.commands.js';
import { toImportJson, type ImportJson } from './import.dto.js';
import { ImportRecord } from './import.entity.js';
import { listFieldsOfCards, resolveColumns, type MappingRequest } from './import-columns.js';
import { ImportRows } from './import-rows.service.js';
import { ImportsService } from './imports.service.js';
import { ISSUES } from '#translations/issues.js';

/** Holds what may still be chosen before an import is started. */
export type DraftChoices = {
  cardId: number | null;
  /** The field of every column by its header. */
  mapping: MappingRequest;
  /** Null: as the dates themselves show it. */
  dateOrder: DateOrder | null;
};

/** Chooses the columns of an import that waits for its start. It is then checked again. */
export class ChooseImportColumns extends Command<ImportJson> {
  constructor(
    readonly context: CommandContext,
    readonly id: number,
    readonly choices: DraftChoices,
  ) {
    super();
  }
}

@CommandHandler(ChooseImportColumns)
export class ChooseImportColumnsHandler implements ICommandHandler<ChooseImportColumns> {
  constructor(
    private readonly writes: AuditedWrites,
    private readonly imports: ImportsService,
    private readonly rows: ImportRows,
    private readonly templates: TemplatesService,
  ) {}

  /** @throws InvalidFieldsError, RejectedError when the import is not waiting */
  async execute({ context, id, choices }: ChooseImportColumns): Promise<ImportJson> {
    const { accountId } = context;
    const { cardId } = choices;
    const before = await this.imports.get(accountId, id);
    assertWaiting(before, 'changed');
    if (cardId !== null && cardId !== before.cardId) {
      assertOpenForEnrolment(await this.templates.get(accountId, cardId), getNow());
    }
    const headers = before.columns.map(({ name }) => name);
    const columns = getColumns(resolveColumns(headers, choices.mapping));
    const fieldsOfCards = listFieldsOfCards(columns);
    if (cardId === null && fieldsOfCards.length > 0) {
      const issue = ISSUES.card_required_for_fields({ fields: fieldsOfCards.join(' and ') });
      throw new InvalidFieldsError({ card_id: [issue] });
    }
    const dateOrder =
      choices.dateOrder ??
      chooseDateOrder(listDateCells(await this.rows.listCells(id), columns), columns);
    return this.writes.write(context, async (transaction) => {
      const current = await this.imports.lock(transaction.manager, accountId, id);
      if (transaction.isRepeated && current.state === 'checking') return toImportJson(current);
      assertWaiting(current, 'changed');
      return this.update(transaction, current, {
        state: 'checking',
        card_id: cardId,
        // TypeORM's type of a JSON column.
        columns: columns as never,
        date_order: dateOrder,
        rows_done: 0,
        created: 0,
        updated: 0,
        unchanged: 0,
        failed: 0,
        due_at: getNow(),
      });
    });
  }

  private async update(
    { manager }: AuditedTransaction,
    { id, accountId }: CustomerImport,
    changes: Parameters<AuditedTransaction['manager']['update']>[2],
  ): Promise<ImportJson> {
    await manager.update(ImportRecord, { id }, { ...changes, updated_at: getNow() });
    return toImportJson(await this.imports.lock(manager, accountId, id));
  }
}

/** Discards an import that waits for its start: its rows, which are personal, are deleted at once. */
export class DiscardImport extends Command<ImportJson> {
  constructor(
    readonly context: CommandContext,
    readonly id: number,
  ) {
    super();
  }
}

@CommandHandler(DiscardImport)
export class DiscardImportHandler implements ICommandHandler<DiscardImport> {
  constructor(
    private readonly writes: AuditedWrites,
    private readonly imports: ImportsService,
  ) {}

  /** @throws RejectedError when the import is not waiting */
  async execute({ context, id }: DiscardImport): Promise<ImportJson> {
    const { accountId } = context;
    return this.writes.write(context, async (transaction) => {
      const { manager } = transaction;
      const current = await this.imports.lock(manager, accountId, id);
      if (current.state === 'failed' && current.rowsDeletedAt !== null)
        return toImportJson(current);
      assertWaiting(current, 'discarded');
      const now = getNow();
      await query(manager, 'delete from import_rows where import_id = $1', [id]);
      await manager.update(
        ImportRecord,
        { id },
        {
          state: 'failed',
          error: { base: [ISSUES.import_discarded] },
          rows_deleted_at: now,
          finished_at: now,
          updated_at: now,
          due_at: null,
        },
      );
      const subject = { import_id: id };
      await transaction.audit({ accountIds: [accountId], type: 'import.discarded', subject });
      return toImportJson(await this.imports.lock(manager, accountId, id));
    });
  }
}

export const draftImportHandlers = [ChooseImportColumnsHandler, DiscardImportHandler];
