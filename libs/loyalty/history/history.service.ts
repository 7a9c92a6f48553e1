import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { DamagedHistoryError, NotFoundError } from '#platform/kernel/errors.js';
import { query } from '#platform/database/connection.js';
import { EventStore, type StoredEvent } from '#platform/event-store/port/event-store.js';
import { toRecorded } from '#platform/event-store/port/codec.js';
import { EventTypes } from '#platform/event-store/port/event-types.js';
import { PersonalKeys } from '#platform/event-store/personal-keys/personal-keys.js';
import { isAfter } from '#platform/event-store/port/position.js';
import type { CursorKey, PageRange } from '#platform/http/page.js';
import { ActorNames } from './actor-names.service.js';
import {
  NO_ENTRIES,
  parseActor,
  type EntryWithEvent,
  type HistoryEntry,
  type Tail,
} from './entry.js';
import { assertHasEvent, type DecodedEvent, type DetailedEntry } from './history-entry.dto.js';
import {
  createHistoryQuery,
  getCardStream,
  listIndexKeys,
  matchesFilter,
  MAX_SEQ,
  NO_FILTER,
  formatCursorPosition,
  toPosition,
  WINDOWS,
  type HistoryFilter,
  type IndexKey,
  type Slice,
} from './history-query.js';
import { toEntry, ENTRY_COLUMNS, HistoryTable, type EntryRow } from './history-table.service.js';
import { ReceiptEntries } from './receipt-entries.service.js';

/** Limits the events that a list of a whole store adds from the log when the table lags behind. */
const TAIL = 500;
/** The usual difference between the clocks of processes; an index finds larger ones. */
const NO_LATER_THAN = "interval '1 minute'";

/**
 * Numbers between which all entries of a store and a time are, although processes' clocks disagree. An imported history is
 * years late, and only its own store may have to look through what others have recorded since.
 */
export const TIMES = {
  name: 'history_times',
  text: `select
      find_history_seq(null, $1) as low,
      find_history_seq(null, $2::timestamptz + greatest(${NO_LATER_THAN}, (
        select latest_recorded_at - recorded_at from history
        where account_id = $3 and latest_recorded_at - recorded_at > ${NO_LATER_THAN}
        order by account_id desc, latest_recorded_at - recorded_at desc limit 1))) - 1 as high`,
};

const BEFORE = { name: 'history_before', text: 'select find_history_seq($1, null) - 1 as seq' };

/** The last entry of all and of one stream, at one moment. By whole index keys: see `createHistoryQuery`. */
const ENDS = {
  name: 'history_last_entries',
  text: `select (select seq from history order by seq desc limit 1) as seq,
           (select revision from history where (stream, seq) between ($1, 0) and ($1, ${MAX_SEQ})
            order by stream desc, seq desc limit 1) as revision`,
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
        : await this.readTailOfStream(accountId, getCardStream(filter.customerCardId), false);
    if (externalRef !== null) {
      const entries = await this.receipts.find(accountId, externalRef, { tail, end });
      const matching = entries.filter(({ entry }) => matchesFilter(filter, entry));
      return ({ after, limit }) =>
        this.addDetails(
          matching.filter(({ entry }) => !after || isBefore(entry, after)).slice(0, limit),
          tail,
        );
    }
    const { low, high } = await this.findBounds(accountId, filter, end);
    const listing = { accountId, filter, low, high, end, tail, readFrom };
    return ({ after, limit }) => this.readPage(listing, after, limit);
  }

  /**
   * Lists the last entries of a customer card's own stream, newest first: only they change its balance.
   * @returns `tail` is all of the card's that the table does not have yet, oldest first
   * @throws DamagedHistoryError when one of them lacks its event, or those before it are lost
   */
  async listForCustomerCard(
    accountId: number,
    id: number,
    limit: number,
  ): Promise<{ last: DetailedEntry[]; tail: HistoryEntry[] }> {
    const stream = getCardStream(id);
    const { tail, end } = await this.readTailOfStream(accountId, stream);
    const filter = { ...NO_FILTER, customerCardId: id };
    const listing = { accountId, filter, low: 0, high: end, end, tail, readFrom: this.readPrimary };
    const last = await this.readPage(listing, null, limit, [new Map([['stream', stream]])]);
    last.forEach(assertHasEvent);
    if (last.some(({ entry }) => entry.balance === null)) {
      throw new DamagedHistoryError('past', `events of ${stream} are missing`);
    }
    return { last, tail: tail.map(({ entry }) => entry).toReversed() };
  }

  /**
   * Gets an entry of a customer card.
   * @param eventId of the stored event
   * @throws NotFoundError
   * @throws DamagedHistoryError when it lacks its event
   */
  async getOfCustomerCard(accountId: number, id: number, eventId: string): Promise<DetailedEntry> {
    const { tail } = await this.readTailOfStream(accountId, getCardStream(id));
    const late = tail.filter(({ entry }) => entry.eventId === eventId);
    const rows =
      late.length > 0
        ? []
        : await query<EntryRow>(this.pool, { ...ENTRY_OF_EVENT, values: [eventId, id, accountId] });
    const entries = [...late, ...rows.map((row) => ({ entry: toEntry(row) }))];
    const [entry] = await this.addDetails(entries, tail);
    if (!entry) throw new NotFoundError('Event');
    assertHasEvent(entry);
    return entry;
  }

  private async readPage(
    { accountId, filter, low, high, end, tail, readFrom }: Listing,
    after: CursorKey | null,
    limit: number,
    keys = listIndexKeys(accountId, filter),
  ): Promise<DetailedEntry[]> {
    const entries: EntryWithEvent[] = tail
      .filter(({ entry }) => matchesFilter(filter, entry) && (!after || isBefore(entry, after)))
      .slice(0, limit);
    const left = limit - entries.length;
    if (left > 0 && low <= high) {
      const upTo = after ? Math.min(high, await this.findLastBefore(after)) : high;
      const slice = { accountId, low, high: upTo, limit: left };
      const rows: EntryRow[] = [];
      for (const key of keys) rows.push(...(await readSlice(readFrom, slice, filter, key)));
      rows.sort((one, other) => other.seq - one.seq);
      entries.push(...rows.slice(0, left).map((row) => ({ entry: toEntry(row) })));
    }
    return this.addDetails(entries, tail, end);
  }

  /**
   * Adds the details that only the events have. An event that the event store has lost, or hides, has none.
   * @param end the last number in the table, if what undid an entry later is to be left out
   */
  async addDetails(
    entries: EntryWithEvent[],
    tail: EntryWithEvent[] = [],
    end: number | null = null,
  ): Promise<DetailedEntry[]> {
    const missing = entries.flatMap(({ entry, event }) => (event ? [] : [entry]));
    const read = missing.length > 0 ? await this.eventStore.readEvents(missing) : [];
    const sealed = [...read, ...entries.flatMap(({ event }) => event ?? [])];
    const opened = await this.keys.openEvents(sealed);
    const byId = new Map(opened.map((event) => [event.id, this.decode(event)]));
    const events = entries.map(({ entry }) => byId.get(entry.eventId));
    const [names, reversed] = await Promise.all([
      this.names.findNames(
        entries.map(({ entry }, i) => events[i]?.meta.actor ?? parseActor(entry.actor)),
      ),
      this.findReversals(entries, tail, end),
    ]);
    return entries.map(({ entry }, i) => {
      const event = events[i];
      const { id: reversedBy = null, at: reversedAt = null } = reversed.get(entry.eventId) ?? {};
      const details = { entry, actorName: names[i] ?? null, reversedBy, reversedAt };
      return event
        ? { ...details, event, isLost: false }
        : { ...details, event: createLostEvent(entry), isLost: true };
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

  /**
   * Reads what the table does not have yet of one stream, however much that is.
   * @throws DamagedHistoryError when it must be whole, and is not
   */
  private async readTailOfStream(
    accountId: number,
    stream: string,
    mustBeWhole = true,
  ): Promise<Tail> {
    const [ends] = await query<{ seq: number | null; revision: number | null }>(this.pool, {
      ...ENDS,
      values: [stream],
    });
    const events: StoredEvent[] = [];
    const range = { from: (ends?.revision ?? -1) + 1 };
    try {
      for await (const event of this.eventStore.readStream(stream, range)) events.push(event);
    } catch (error) {
      if (mustBeWhole || !(error instanceof DamagedHistoryError)) throw error;
    }
    const ownEvents = this.takeKnown(events).filter(({ meta }) => meta.accountId === accountId);
    const end = ends?.seq ?? -1;
    return { tail: await this.createTail(ownEvents, end), end };
  }

  private async createTail(events: StoredEvent[], seq: number): Promise<Listing['tail']> {
    const { entries } = await this.table.createNextEntries(events, { ...NO_ENTRIES, seq });
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
    accountId: number,
    { from, to }: HistoryFilter,
    end: number,
  ): Promise<{ low: number; high: number }> {
    if (from === null && to === null) return { low: 0, high: end };
    const [times] = await query<{ low: number; high: number }>(this.pool, {
      ...TIMES,
      values: [from, to, accountId],
    });
    return { low: times?.low ?? 0, high: to === null ? end : Math.min(end, times?.high ?? end) };
  }

  /** Finds the number of the last entry before a position. */
  async findLastBefore(after: CursorKey): Promise<number> {
    const [row] = await query<{ seq: number }>(this.pool, {
      ...BEFORE,
      values: [formatCursorPosition(after)],
    });
    return row?.seq ?? -1;
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

/** Creates what is known of an event by its entry alone. */
function createLostEvent(entry: HistoryEntry): DecodedEvent {
  const { accountId, channel, occurredAt, recordedAt } = entry;
  const actor = parseActor(entry.actor);
  return { data: {}, meta: { accountId, actor, channel, requestId: '', occurredAt, recordedAt } };
}

/** Reads the entries of a slice, newest first, window by window: however few match, no statement takes long. */
export async function readSlice(
  readFrom: DatabaseChoice,
  slice: Slice,
  filter: HistoryFilter,
  key: IndexKey,
): Promise<EntryRow[]> {
  const rows: EntryRow[] = [];
  let window = WINDOWS.first;
  for (let { high } = slice; high >= slice.low; window = WINDOWS.next) {
    const part = { ...slice, high, limit: slice.limit - rows.length };
    const queries = createHistoryQuery(ENTRY_COLUMNS, part, filter, key, window);
    rows.push(...(await readFrom((pool) => query<EntryRow>(pool, queries.rows))));
    const { end } = queries;
    if (end === null || rows.length === slice.limit) break;
    const [last] = await readFrom((pool) => query<{ seq: number }>(pool, end));
    if (!last) break;
    high = last.seq - 1;
  }
  return rows;
}

function isBefore({ position }: HistoryEntry, after: CursorKey): boolean {
  return isAfter(toPosition(after), position);
}
