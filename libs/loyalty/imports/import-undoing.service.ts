import { Injectable } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import type { CommandContext, RecordedEvent } from '#platform/kernel/aggregate.js';
import { DamagedHistoryError, NotFoundError, RejectedError } from '#platform/kernel/errors.js';
import { toPublicEventId } from '#platform/kernel/public-id.js';
import { toRecorded } from '#platform/event-store/port/codec.js';
import { EventStore } from '#platform/event-store/port/event-store.js';
import { ReadModels, toStreamName } from '#platform/event-store/read-models/read-models.js';
import { ReverseCardEvent } from '#loyalty/stamping/corrections.commands.js';
import { IMPORT_CHANNEL, customerCard } from '#loyalty/stamping/customer-card.js';
import type { CustomerCardEvent } from '#loyalty/stamping/customer-card.events.js';
import { CustomerCardsService } from '#loyalty/stamping/customer-cards.service.js';
import { UpdateCustomer } from '#loyalty/customers/customer.commands.js';
import { customer, type Customer } from '#loyalty/customers/customer.js';
import { customerReadModel } from '#loyalty/customers/customer.entity.js';
import { EraseCustomer } from '#loyalty/customers/erasing.commands.js';
import { readWholeStream } from './whole-stream.js';
import { createRowIds, isCausedBy, type CustomerImport } from './customer-import.js';
import { findFormerValues } from './former-values.js';
import { ImportRows, type RowResult, type StoredRow } from './import-rows.service.js';
import { runConcurrently } from './row-concurrency.js';
import { ISSUES } from '#translations/issues.js';
import type { FieldIssues } from '#platform/kernel/issues.js';

/** An erasure takes up to five seconds after a process was killed, and a batch must end within its lease. */
const BATCH_SIZE = 40;
const CONCURRENCY = 8;

const USED_SINCE: FieldIssues = { base: [ISSUES.used_since_import] };

/**
 * Takes rows back with the commands of the API. What an attempt before has taken back is found in the history, so that
 * a process may be killed at any time.
 */
@Injectable()
export class ImportUndoing {
  constructor(
    private readonly commands: CommandBus,
    private readonly eventStore: EventStore,
    private readonly readModels: ReadModels,
    private readonly customerCards: CustomerCardsService,
    private readonly rows: ImportRows,
  ) {}

  /** Takes the next rows back, until the signal aborts. @returns false when none was left */
  async undoBatch(undone: CustomerImport, signal: AbortSignal): Promise<boolean> {
    const states = ['created', 'updated'] as const;
    const stored = await this.rows.listNext(undone.id, [...states], BATCH_SIZE);
    if (stored.length === 0) return false;
    const results: RowResult[] = [];
    try {
      await runConcurrently(
        stored,
        CONCURRENCY,
        async (row) => {
          results.push(await this.undoRow(undone, row));
        },
        signal,
      );
    } finally {
      await this.rows.record(undone.id, [...states], results);
    }
    return true;
  }

  private async undoRow(undone: CustomerImport, stored: StoredRow): Promise<RowResult> {
    const { row, customerId, customerCardId } = stored;
    const result = (state: 'undone' | 'refused', errors: FieldIssues | null): RowResult => ({
      row,
      state,
      errors,
      customerId,
      customerCardId,
    });
    try {
      const errors = await this.undo(undone, stored);
      return errors ? result('refused', errors) : result('undone', null);
    } catch (error) {
      if (error instanceof RejectedError) return result('refused', error.issues);
      if (error instanceof NotFoundError || error instanceof DamagedHistoryError) {
        return result('refused', { base: [ISSUES.record_failed({ reason: error.message })] });
      }
      throw error;
    }
  }

  /** @returns why it cannot be taken back; null when it is */
  private async undo(
    undone: CustomerImport,
    { row, state, customerId, customerCardId }: StoredRow,
  ): Promise<FieldIssues | null> {
    if (customerId === null) return null;
    const current = (await this.readModels.loadCurrent(customerReadModel, customerId))?.state;
    // Nothing is left to be taken back of somebody who was erased.
    if (!current || current.erasedAt !== null) return null;
    const { accountId, actor } = undone;
    const { causationId, requestId } = createRowIds(undone, row);
    const context = {
      accountId,
      actor,
      channel: IMPORT_CHANNEL,
      causationId: `${causationId}-undo`,
      requestId: `${requestId}-undo`,
    };
    if (state === 'created') {
      if (await this.wasUsed(undone, current)) return USED_SINCE;
      await this.reverseStamps(context, causationId, customerId, customerCardId);
      await this.commands.execute(new EraseCustomer(context, customerId));
      return null;
    }
    const former = await this.findFormerValues(current, causationId);
    if (former.errors) return former.errors;
    await this.reverseStamps(context, causationId, customerId, customerCardId);
    await this.commands.execute(new UpdateCustomer(context, customerId, former.changes));
    return null;
  }

  /** Tells whether anything happened to the customer or their cards that the import did not do. */
  private async wasUsed(undone: CustomerImport, { id }: Customer): Promise<boolean> {
    const cards = await this.customerCards.listIds([id]);
    const streams = [
      toStreamName(customer, id),
      ...cards.map((card) => toStreamName(customerCard, card.id)),
    ];
    for (const stream of streams) {
      for (const { meta } of await readWholeStream(this.eventStore, stream)) {
        if (meta.channel !== 'system' && !isCausedBy(undone, meta)) return true;
      }
    }
    return false;
  }

  /** Reverses the stamps that the row has added or taken off, unless they are reversed already. */
  private async reverseStamps(
    context: CommandContext,
    causationId: string,
    customerId: number,
    customerCardId: number | null,
  ): Promise<void> {
    if (customerCardId === null) return;
    const stored = await readWholeStream(
      this.eventStore,
      toStreamName(customerCard, customerCardId),
    );
    const events = stored.map((event) => toRecorded<CustomerCardEvent>(customerCard, event));
    const reversed = new Set(events.map(findReversedId));
    for (const event of events) {
      const isOwn = event.meta.causationId === causationId && isStampImport(event);
      if (!isOwn || reversed.has(event.id)) continue;
      const path = { customerId, id: customerCardId };
      await this.commands.execute(
        new ReverseCardEvent(context, path, toPublicEventId(event.id), 'Import undone'),
      );
    }
  }

  /** Finds the values that the row has changed, as they were before it. */
  private async findFormerValues(current: Customer, causationId: string) {
    const stream = toStreamName(customer, current.id);
    const events = await readWholeStream(this.eventStore, stream);
    const own = events.filter(({ meta }) => meta.causationId === causationId);
    const [first] = own;
    const last = own.at(-1);
    if (!first || !last) return { changes: {} };
    const before = await this.readModels.project(customer, stream, { to: first.revision - 1 });
    const after = await this.readModels.project(customer, stream, { to: last.revision });
    if (!before || !after) return { changes: {} };
    return findFormerValues(before.state, after.state, current);
  }
}

function isStampImport({ type, data }: RecordedEvent<CustomerCardEvent>): boolean {
  const isStamps = type === 'StampsEarned' || type === 'StampsRemoved';
  return isStamps && 'source' in data && data.source === 'adjustment' && data.reverses === null;
}

function findReversedId({ data }: RecordedEvent<CustomerCardEvent>): string | null {
  return 'reverses' in data ? data.reverses : null;
}
