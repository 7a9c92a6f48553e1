import { Injectable } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import type { CommandContext } from '#platform/kernel/aggregate.js';
import {
  DamagedHistoryError,
  NotFoundError,
  RejectedError,
  TakenError,
} from '#platform/kernel/errors.js';
import { EventStore, type StoredEvent } from '#platform/event-store/port/event-store.js';
import { toStreamName } from '#platform/event-store/read-models/read-models.js';
import { SetImportedStamps } from '#loyalty/stamping/imported-stamps.commands.js';
import type { ImportedCard } from '#loyalty/stamping/imported-stamps.js';
import { IMPORT_CHANNEL, customerCard } from '#loyalty/stamping/customer-card.js';
import { EnrolCustomer } from '#loyalty/stamping/customer-card.commands.js';
import type { CustomerCardJson } from '#loyalty/stamping/customer-card.dto.js';
import { CustomerCardsService } from '#loyalty/stamping/customer-cards.service.js';
import { CreateCustomer, UpdateCustomer } from '#loyalty/customers/customer.commands.js';
import {
  customer,
  type Customer,
  type CustomerChanges,
  type StoreRegion,
} from '#loyalty/customers/customer.js';
import type { CustomerInput } from '#loyalty/customers/customer-input.dto.js';
import { StoreRegions } from '#loyalty/customers/store-regions.service.js';
import { readWholeStream } from './whole-stream.js';
import { CustomerMatches, EMPTY_MATCH, type Match } from './customer-matches.service.js';
import { givesConsent, omitMerged, omitWithdrawn } from './customer-changes.js';
import { createRowIds, type CustomerImport } from './customer-import.js';
import { findRowIssues } from './import-checking.service.js';
import { readEntry, type ImportEntry } from './import-row.dto.js';
import { ImportRows, type RowResult, type StoredRow } from './import-rows.service.js';
import { runConcurrently } from './row-concurrency.js';
import { ISSUES } from '#translations/issues.js';
import type { FieldIssues } from '#platform/kernel/issues.js';

const BATCH_SIZE = 256;
/** Commits, and what they need, are grouped: the more at once, the less each of them costs. */
const CONCURRENCY = 48;
const MAX_TRIES = 3;
const CLOCKS_DIFFER_MS = 60_000;

type CardsByCustomer = Map<number, CustomerCardJson[]>;

type ReadRow = { row: number; entry: ImportEntry };

/** @property cards of the customers whom it may be about */
type PendingRow = ReadRow & { match: Match; cards: CardsByCustomer };

/** The customer that a row has led to. */
type Applied = Pick<RowResult, 'state' | 'customerId' | 'customerCardId'>;

/**
 * Applies rows with the commands of the API. Whatever a row did before a process was killed, it finds again: by the
 * customer's unique values, by their card, by the stamps that the card's history has from imports.
 */
@Injectable()
export class ImportApplying {
  constructor(
    private readonly commands: CommandBus,
    private readonly eventStore: EventStore,
    private readonly rows: ImportRows,
    private readonly regions: StoreRegions,
    private readonly customerCards: CustomerCardsService,
    private readonly matches: CustomerMatches,
  ) {}

  /** Applies the next rows, until the signal aborts. @returns false when none was left */
  async applyBatch(running: CustomerImport, signal: AbortSignal): Promise<boolean> {
    const stored = await this.rows.listNext(running.id, ['pending'], BATCH_SIZE);
    if (stored.length === 0) return false;
    const region = await this.regions.get(running.accountId);
    const { read, failed } = readRows(running, stored);
    const work = await this.match(running, region, read);
    const results: RowResult[] = failed;
    try {
      await runConcurrently(
        work,
        CONCURRENCY,
        async (row) => {
          results.push(await this.applyRow(running, region, row));
        },
        signal,
      );
    } finally {
      await this.rows.record(running.id, ['pending'], results);
    }
    return true;
  }

  private async applyRow(
    running: CustomerImport,
    region: StoreRegion,
    pending: PendingRow,
  ): Promise<RowResult> {
    const { row } = pending;
    const [matched] = pending.match.customers;
    const fail = (errors: FieldIssues): RowResult => ({
      row,
      state: 'failed',
      errors,
      customerId: matched?.id ?? null,
      customerCardId: null,
    });
    try {
      const applied = await this.apply(running, region, pending);
      return 'errors' in applied ? fail(applied.errors) : { row, errors: null, ...applied };
    } catch (error) {
      if (error instanceof RejectedError) return fail(error.issues);
      if (error instanceof NotFoundError || error instanceof DamagedHistoryError) {
        return fail({ base: [ISSUES.record_failed({ reason: error.message })] });
      }
      throw error;
    }
  }

  /** Others may create or enrol the customer meanwhile: then they are found, and updated. */
  private async apply(
    running: CustomerImport,
    region: StoreRegion,
    { row, entry, match: firstMatch, cards: firstCards }: PendingRow,
  ): Promise<Applied | { errors: FieldIssues }> {
    const { accountId, cardId, actor } = running;
    const ids = createRowIds(running, row);
    const context = { accountId, actor, channel: IMPORT_CHANNEL, ...ids };
    for (let match = firstMatch, cards = firstCards, tries = 1; ; tries++) {
      const errors = findRowIssues(entry, match, region);
      if (errors) return { errors };
      const [existing] = match.customers;
      try {
        if (existing) {
          const person = { existing, cards: cards.get(existing.id) ?? [] };
          const changes = omitMerged(entry.changes, match);
          return await this.update(context, running, person, { ...entry, changes });
        }
        const created = await this.commands.execute(
          new CreateCustomer(
            context,
            toInput(entry.changes),
            cardId,
            false,
            null,
            toImportedCard(running, entry),
          ),
        );
        const customerCardId = created.customer_card?.id ?? null;
        return { state: 'created', customerId: created.id, customerCardId };
      } catch (error) {
        if (!(error instanceof TakenError) || tries === MAX_TRIES) throw error;
      }
      const [rematchedRow] = await this.match(running, region, [{ row, entry }]);
      if (!rematchedRow) return { errors: { base: [ISSUES.customer_erased] } };
      ({ match, cards } = rematchedRow);
    }
  }

  /**
   * Matches those of the rows that are still to be applied. One whose customer was erased meanwhile matches nobody, and would
   * create them again: but its erasure has ended it.
   */
  private async match(
    { id, accountId }: CustomerImport,
    region: StoreRegion,
    rows: ReadRow[],
  ): Promise<PendingRow[]> {
    const matches = await this.matches.find(
      accountId,
      region,
      rows.map(({ entry }) => entry),
    );
    const cards = await this.listCards(matches);
    const pending = await this.rows.findPending(
      id,
      rows.map(({ row }) => row),
    );
    return rows.flatMap((row, i) =>
      pending.has(row.row) ? [{ ...row, match: matches[i] ?? EMPTY_MATCH, cards }] : [],
    );
  }

  private listCards(matches: Match[]): Promise<CardsByCustomer> {
    const ids = matches.flatMap(({ customers }) => customers.map(({ id }) => id));
    return this.customerCards.listByCustomer(ids);
  }

  /**
   * Updates a customer who exists. The card comes first: what it refuses leaves the whole row undone. A history is read
   * only if it may hold what this row did before a process was killed, or a consent that was withdrawn.
   */
  private async update(
    context: CommandContext,
    running: CustomerImport,
    { existing, cards }: { existing: Customer; cards: CustomerCardJson[] },
    entry: ImportEntry,
  ): Promise<Applied> {
    const card = await this.updateCard(context, running, { existing, cards }, entry);
    const history =
      isRecent(running, existing.updatedAt) || givesConsent(existing, entry.changes)
        ? await readWholeStream(this.eventStore, toStreamName(customer, existing.id))
        : [];
    const isOwn = ({ meta }: StoredEvent) => meta.causationId === context.causationId;
    const wasCreatedHere = history[0] !== undefined && isOwn(history[0]);
    const changes = wasCreatedHere ? entry.changes : omitWithdrawn(entry.changes, history);
    const updated = await this.commands.execute(new UpdateCustomer(context, existing.id, changes));
    const hasChanged =
      card.hasChanged || updated.updated_at !== existing.updatedAt || history.some(isOwn);
    return {
      state: wasCreatedHere ? 'created' : hasChanged ? 'updated' : 'unchanged',
      customerId: existing.id,
      customerCardId: card.id,
    };
  }

  /** Enrols the customer, or carries stamps over to the card that they have. */
  private async updateCard(
    context: CommandContext,
    running: CustomerImport,
    { existing, cards }: { existing: Customer; cards: CustomerCardJson[] },
    entry: ImportEntry,
  ): Promise<{ id: number | null; hasChanged: boolean }> {
    const { cardId } = running;
    if (cardId === null) return { id: null, hasChanged: false };
    const card = cards.find((candidate) => candidate.card_id === cardId);
    const importedCard = toImportedCard(running, entry);
    if (!card) {
      const command = new EnrolCustomer(context, existing.id, cardId, importedCard);
      return { id: (await this.commands.execute(command)).id, hasChanged: true };
    }
    if (entry.code !== null && entry.code !== card.code) {
      throw new RejectedError({ code: [ISSUES.card_code_differs] });
    }
    const path = { customerId: existing.id, id: card.id };
    const { stampImport } = importedCard;
    const hasChanged =
      stampImport !== undefined &&
      (await this.commands.execute(new SetImportedStamps(context, path, stampImport)));
    if (hasChanged || !isRecent(running, card.updated_at)) return { id: card.id, hasChanged };
    const history = await readWholeStream(this.eventStore, toStreamName(customerCard, card.id));
    const isOwn = ({ meta }: StoredEvent) => meta.causationId === context.causationId;
    return { id: card.id, hasChanged: history.some(isOwn) };
  }
}

function readRows(
  { columns, dateOrder }: CustomerImport,
  stored: StoredRow[],
): { read: ReadRow[]; failed: RowResult[] } {
  const read: ReadRow[] = [];
  const failed: RowResult[] = [];
  for (const { row, cells, customerId } of stored) {
    const { entry, errors } = readEntry(cells ?? [], columns, dateOrder);
    if (entry) read.push({ row, entry });
    else failed.push({ row, state: 'failed', errors, customerId, customerCardId: null });
  }
  return { read, failed };
}

function toImportedCard({ id }: CustomerImport, { code, stamps }: ImportEntry): ImportedCard {
  return {
    ...(code !== null && { code }),
    ...(stamps !== null && { stampImport: { stamps, reason: `Import ${id}` } }),
  };
}

/** Tells whether the import may have changed it: the clocks of processes differ by less than a minute. */
function isRecent({ startedAt, createdAt }: CustomerImport, updatedAt: string): boolean {
  return Date.parse(updatedAt) >= (startedAt ?? createdAt).getTime() - CLOCKS_DIFFER_MS;
}

function toInput(changes: CustomerChanges): CustomerInput {
  return {
    firstName: changes.firstName ?? '',
    lastName: changes.lastName ?? null,
    email: changes.email ?? null,
    phone: changes.phone ?? null,
    birthday: changes.birthday ?? null,
    metadata: {},
    externalReferences: changes.externalReferences ?? [],
    marketingConsent: changes.marketingConsent ?? false,
    smsConsent: changes.smsConsent ?? false,
  };
}
