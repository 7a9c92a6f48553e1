import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { DamagedHistoryError, NotFoundError } from '#kernel/errors.js';
import { query } from '#database/connection.js';
import { EventStore, type StoredEvent } from '#event-store/port/event-store.js';
import { toRecorded } from '#event-store/port/codec.js';
import { EventTypes } from '#event-store/port/event-types.js';
import { PersonalKeys } from '#event-store/personal-keys/personal-keys.js';
import { isAfter } from '#event-store/port/position.js';
import type { CursorKey, PageRange } from '#http/page.js';
import { ActorNames } from './actor-names.service.js';
import { NO_ENTRIES, type EntryWithEvent, type HistoryEntry, type Tail } from './entry.js';
import type { DecodedEvent, DetailedEntry } from './history-entry.dto.js';
import {
  createHistoryQuery,
  matchesFilter,
  NO_FILTER,
  formatCursorPosition,
  toPosition,
  type HistoryFilter,
} from './history-query.js';
import { toEntry, ENTRY_COLUMNS, HistoryTable, type EntryRow } from './history-table.service.js';
import { ReceiptEntries } from './receipt-entries.service.js';

/** Limits the events that a list of a whole store adds from the log when the table lags behind. */
const TAIL = 500;
/** The usual difference between the clocks of processes; an index finds larger ones. */
const NO_LATER_THAN = "interval '1 minute'";

/** Numbers between which all entries of a time are, although processes' clocks disagree. */
const TIMES = {
  name: 'history_times',
  text: `select
      (select seq from history where latest_recorded_at >= $1
       order by latest_recorded_at, seq limit 1) as low,
      (select seq from history
       where latest_recorded_at < $2::timestamptz + greatest(${NO_LATER_THAN}, (
         select latest_recorded_at - recorded_at from history
         where latest_recorded_at - recorded_at > ${NO_LATER_THAN}
         order by latest_recorded_at - recorded_at desc limit 1))
       order by latest_recorded_at desc, seq desc limit 1) as high`,
};

const BEFORE = {
  name: 'history_before',
  text: 'select seq from history where position >= $1 order by position limit 1',
};

/** The last entry of all and of one stream, at one moment. */
const ENDS = {
  name: 'history_last_entries',
  text: `select (select seq from history order by seq desc limit 1) as seq,
           (select revision from history where stream = $1 order by revision desc limit 1) as revision`,
};

const REVERSED = {
  name: 'history_reversed',
  text: `select reverses, event_id, recorded_at from history
         where reverses = any ($1) and seq <= coalesce($2, seq)`,
};

const ENTRY_OF_EVENT = {
  name: 'history_entry_of_event',
  text: `select ${ENTRY_COLUMNS} from history
         where event_id = $1 and customer_card_id = $2 and account_id = $3`,
};

/** One list, at one moment: what is in the table, and what follows it in the log. */
type Listing = {
  accountId: number;
  filter: HistoryFilter;
  /** The last number in the table. */
  end: number;
  /** The last number that is read from the table. */
  high: number;
  low: number;
  /** Newest first, matching or not. */
  tail: Required<EntryWithEvent>[];
  readFrom: DatabaseChoice;
};

/** Runs a query on the database of its choice, which has everything that the primary had when it was called. */
export type DatabaseChoice = <R>(work: (pool: Pool) => Promise<R>) => Promise<R>;

/** Reads what happened, newest first. */
@Injectable()
export class HistoryService {
  constructor(
    private readonly pool: Pool,
    private readonly eventStore: EventStore,
    private readonly table: HistoryTable,
    private readonly types: EventTypes,
    private readonly keys: PersonalKeys,
    private readonly names: ActorNames,
    private readonly receipts: ReceiptEntries,
  ) {}

  /**
   * @param externalRef only entries with this receipt number
   * @param readFrom for the pages of a report; by default the primary
   * @returns what finds the elements of one page after another
   */
  async list(
    accountId: number,
    filter: HistoryFilter,
    externalRef: string | null,
    readFrom: DatabaseChoice = this.readPrimary,
  ): Promise<(range: PageRange) => Promise<DetailedEntry[]>> {
    const { tail, end } =
      filter.customerCardId === null
        ? await this.readTailOfLog(accountId)
        : await this.readTailOfStream(accountId, `customer_card-${filter.customerCardId}`);
    if (externalRef !== null) {
      const entries = await this.receipts.find(accountId, externalRef, { tail, end });
      const matching = entries.filter(({ entry }) => matchesFilter(filter, entry));
      return ({ after, limit }) =>
        this.addDetails(
          matching.filter(({ entry }) => !after || isBefore(entry, after)).slice(0, limit),
          tail,
        );
    }
    const { low, high } = await this.findBounds(filter, end);
    const listing = { accountId, filter, low, high, end, tail, readFrom };
    return ({ after, limit }) => this.readPage(listing, after, limit);
  }

  /**
   * Lists the last entries of a customer card, newest first.
   * @returns `tail` is all of the card's that the table does not have yet, oldest first
   */
  async listForCustomerCard(
    accountId: number,
    id: number,
    limit: number,
  ): Promise<{ last: DetailedEntry[]; tail: HistoryEntry[] }> {
    const { tail, end } = await this.readTailOfStream(accountId, `customer_card-${id}`);
    const filter = { ...NO_FILTER, customerCardId: id };
    const listing = { accountId, filter, low: 0, high: end, end, tail, readFrom: this.readPrimary };
    const last = await this.readPage(listing, null, limit);
    return { last, tail: tail.map(({ entry }) => entry).toReversed() };
  }

  /**
   * Gets an entry of a customer card.
   * @param eventId of the stored event
   * @throws NotFoundError
   */
  async getOfCustomerCard(accountId: number, id: number, eventId: string): Promise<DetailedEntry> {
    const { tail } = await this.readTailOfStream(accountId, `customer_card-${id}`);
    const late = tail.filter(({ entry }) => entry.eventId === eventId);
    const rows =
      late.length > 0
        ? []
        : await query<EntryRow>(this.pool, { ...ENTRY_OF_EVENT, values: [eventId, id, accountId] });
    const entries = [...late, ...rows.map((row) => ({ entry: toEntry(row) }))];
    const [entry] = await this.addDetails(entries, tail);
    if (!entry) throw new NotFoundError('Event');
    return entry;
  }

  private async readPage(
    { accountId, filter, low, high, end, tail, readFrom }: Listing,
    after: CursorKey | null,
    limit: number,
  ): Promise<DetailedEntry[]> {
    const entries: EntryWithEvent[] = tail
      .filter(({ entry }) => matchesFilter(filter, entry) && (!after || isBefore(entry, after)))
      .slice(0, limit);
    const left = limit - entries.length;
    if (left > 0 && low <= high) {
      const upTo = after ? Math.min(high, await this.findLastBefore(after, high)) : high;
      const slice = { accountId, low, high: upTo, limit: left };
      const rows = await readFrom((pool) =>
        query<EntryRow>(pool, createHistoryQuery(ENTRY_COLUMNS, slice, filter)),
      );
      entries.push(...rows.map((row) => ({ entry: toEntry(row) })));
    }
    return this.addDetails(entries, tail, end);
  }

  /**
   * Adds the details that only the events have.
   * @param end the last number in the table, if what undid an entry later is to be left out
   */
  async addDetails(
    entries: EntryWithEvent[],
    tail: EntryWithEvent[] = [],
    end: number | null = null,
  ): Promise<DetailedEntry[]> {
    const missing = entries.flatMap(({ entry, event }) => (event ? [] : [entry]));
    const read = missing.length > 0 ? await this.eventStore.readEvents(missing) : [];
    const byId = new Map(read.map((event) => [event.id, event]));
    const events = await this.keys.openEvents(
      entries.map(({ entry, event = byId.get(entry.eventId) }) => {
        if (!event) {
          const reason = `event ${entry.eventId} of ${entry.stream} is missing`;
          throw new DamagedHistoryError('past', reason);
        }
        return event;
      }),
    );
    const [names, reversed] = await Promise.all([
      this.names.findNames(events.map(({ meta }) => meta.actor)),
      this.findReversals(entries, tail, end),
    ]);
    return entries.flatMap(({ entry }, i) => {
      const stored = events[i];
      if (!stored) return [];
      const event = this.decode(stored);
      const { id: reversedBy = null, at: reversedAt = null } = reversed.get(entry.eventId) ?? {};
      return [{ entry, event, actorName: names[i] ?? null, reversedBy, reversedAt }];
    });
  }

  /** Decodes an event to the shape that its type has now; one that only a newer version knows stays as it is. */
  private decode(stored: StoredEvent): DecodedEvent {
    const { type, data, meta } = stored;
    const aggregate = this.types.findAggregate(type);
    if (!aggregate || !this.types.knows(stored)) return { data, meta };
    return { data: toRecorded(aggregate, stored).data, meta };
  }

  /** Reads what the table does not have yet, of the whole store; nothing while that is much. */
  async readTailOfLog(accountId: number): Promise<Tail> {
    const { position, end } = await this.table.getProgress();
    const head = await this.eventStore.head();
    const late = await this.eventStore.readUntil(head, position, TAIL + 1);
    if (late.length > TAIL) return { tail: [], end: end.seq };
    const events = this.takeKnown(late).filter(({ meta }) => meta.accountId === accountId);
    return { tail: await this.createTail(events, end.seq), end: end.seq };
  }

  /** Reads what the table does not have yet of one stream, however much that is. */
  private async readTailOfStream(accountId: number, stream: string): Promise<Tail> {
    const [ends] = await query<{ seq: number | null; revision: number | null }>(this.pool, {
      ...ENDS,
      values: [stream],
    });
    const events: StoredEvent[] = [];
    const range = { from: (ends?.revision ?? -1) + 1 };
    for await (const event of this.eventStore.readStream(stream, range)) events.push(event);
    const ownEvents = this.takeKnown(events).filter(({ meta }) => meta.accountId === accountId);
    const end = ends?.seq ?? -1;
    return { tail: await this.createTail(ownEvents, end), end };
  }

  private async createTail(events: StoredEvent[], seq: number): Promise<Listing['tail']> {
    const entries = await this.table.createNextEntries(events, { ...NO_ENTRIES, seq });
    return entries
      .flatMap((entry, i) => {
        const event = events[i];
        return event ? [{ entry, event }] : [];
      })
      .toReversed();
  }

  /** Takes the events before the first one of a newer version: what follows it cannot be shown without it. */
  private takeKnown(events: StoredEvent[]): StoredEvent[] {
    const unknown = events.findIndex((event) => !this.types.knows(event));
    return unknown < 0 ? events : events.slice(0, unknown);
  }

  private async findBounds(
    { from, to }: HistoryFilter,
    end: number,
  ): Promise<{ low: number; high: number }> {
    if (from === null && to === null) return { low: 0, high: end };
    const [times] = await query<{ low: number | null; high: number | null }>(this.pool, {
      ...TIMES,
      values: [from, to],
    });
    const none = end + 1;
    return {
      low: from === null ? 0 : (times?.low ?? none),
      high: to === null ? end : Math.min(end, times?.high ?? -1),
    };
  }

  private async findLastBefore(after: CursorKey, end: number): Promise<number> {
    const [row] = await query<{ seq: number }>(this.pool, {
      ...BEFORE,
      values: [formatCursorPosition(after)],
    });
    return row ? row.seq - 1 : end;
  }

  private readonly readPrimary: DatabaseChoice = (work) => work(this.pool);

  /** Finds which of these are undone, and by which event. */
  private async findReversals(
    entries: EntryWithEvent[],
    tail: EntryWithEvent[],
    end: number | null,
  ): Promise<Map<string, { id: string; at: string }>> {
    // Only what changes a balance can be undone.
    const ids = entries.flatMap(({ entry }) => (entry.stamps === null ? [] : [entry.eventId]));
    const rows =
      ids.length === 0
        ? []
        : await query<{ reverses: string; event_id: string; recorded_at: Date }>(this.pool, {
            ...REVERSED,
            values: [ids, end],
          });
    const reversed = new Map(
      rows.map(({ reverses, event_id: id, recorded_at: at }) => [
        reverses,
        { id, at: at.toISOString() },
      ]),
    );
    for (const { entry } of tail) {
      if (entry.reverses !== null) {
        reversed.set(entry.reverses, { id: entry.eventId, at: entry.recordedAt });
      }
    }
    return reversed;
  }
}

function isBefore({ position }: HistoryEntry, after: CursorKey): boolean {
  return isAfter(toPosition(after), position);
}
