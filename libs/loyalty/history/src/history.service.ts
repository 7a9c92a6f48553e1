import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { query } from '#database/connection.js';
import { EventStore, type StoredEvent } from '#event-store/port/event-store.js';
import { toRecorded } from '#event-store/port/codec.js';
import { EventTypes } from '#event-store/port/event-types.js';
import { PersonalKeys } from '#event-store/personal-keys/personal-keys.js';
import { isAfter } from '#event-store/port/position.js';
import type { CursorKey, Range } from '#http/page.js';
import { ActorNames } from './actor-names.service.js';
import { NO_ENTRIES, type Entry } from './entry.js';
import type { Shown, Told } from './history-entry.dto.js';
import {
  historyQuery,
  matches,
  NO_FILTER,
  placeOf,
  positionOf,
  type HistoryFilter,
} from './history-query.js';
import { entryIn, ENTRY_COLUMNS, HistoryTable, type EntryRow } from './history-table.service.js';

/** How far the table may be behind the log for a list of a whole store to add what is missing. */
const TAIL = 500;
/** How much the clocks of processes disagree as a rule; beyond that, an index knows. */
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
  name: 'history_ends',
  text: `select (select seq from history order by seq desc limit 1) as seq,
           (select revision from history where stream = $1 order by revision desc limit 1) as revision`,
};

const REVERSED = {
  name: 'history_reversed',
  text: 'select reverses, event_id, recorded_at from history where reverses = any ($1)',
};

/** Entries with their events, still sealed. */
export type Found = { entry: Entry; event?: StoredEvent };

/** What the table does not have yet, newest first. @property end the last number in the table */
export type Tail = { tail: Required<Found>[]; end: number };

/** One list, at one moment: what is in the table, and what follows it in the log. */
type Listing = {
  accountId: number;
  filter: HistoryFilter;
  /** The last number that is read from the table. */
  high: number;
  low: number;
  /** Newest first, matching or not. */
  tail: Required<Found>[];
};

/** Reads what happened, newest first. */
@Injectable()
export class HistoryService {
  constructor(
    private readonly pool: Pool,
    private readonly store: EventStore,
    private readonly table: HistoryTable,
    private readonly types: EventTypes,
    private readonly keys: PersonalKeys,
    private readonly names: ActorNames,
  ) {}

  /** @returns what finds the elements of one page after another */
  async list(accountId: number, filter: HistoryFilter): Promise<(range: Range) => Promise<Told[]>> {
    const { tail, end } =
      filter.customerCardId === null
        ? await this.tailOfLog(accountId)
        : await this.tailOfStream(accountId, `customer_card-${filter.customerCardId}`);
    const { low, high } = await this.between(filter, end);
    const listing = { accountId, filter, low, high, tail };
    return ({ after, limit }) => this.page(listing, after, limit);
  }

  /**
   * The last entries of a customer card, newest first.
   * @returns `tail` is all of the card's that the table does not have yet, oldest first
   */
  async ofCustomerCard(
    accountId: number,
    id: number,
    limit: number,
  ): Promise<{ last: Told[]; tail: Entry[] }> {
    const { tail, end } = await this.tailOfStream(accountId, `customer_card-${id}`);
    const filter = { ...NO_FILTER, customerCardId: id };
    const last = await this.page({ accountId, filter, low: 0, high: end, tail }, null, limit);
    return { last, tail: tail.map(({ entry }) => entry).toReversed() };
  }

  private async page(
    { accountId, filter, low, high, tail }: Listing,
    after: CursorKey | null,
    limit: number,
  ): Promise<Told[]> {
    const found: Found[] = tail
      .filter(({ entry }) => matches(filter, entry) && (!after || isBefore(entry, after)))
      .slice(0, limit);
    const left = limit - found.length;
    if (left > 0 && low <= high) {
      const upTo = after ? Math.min(high, await this.lastBefore(after, high)) : high;
      const slice = { accountId, low, high: upTo, limit: left };
      const rows = await query<EntryRow>(this.pool, historyQuery(ENTRY_COLUMNS, slice, filter));
      found.push(...rows.map((row) => ({ entry: entryIn(row) })));
    }
    return this.told(found, tail);
  }

  /** Adds what only the events know. */
  async told(found: Found[], tail: Found[] = []): Promise<Told[]> {
    const wanted = found.flatMap(({ entry, event }) => (event ? [] : [entry]));
    const read = wanted.length > 0 ? await this.store.readEvents(wanted) : [];
    const byId = new Map(read.map((event) => [event.id, event]));
    const events = await this.keys.openEvents(
      found.map(({ entry, event = byId.get(entry.eventId) }) => {
        if (!event) throw new Error(`event ${entry.eventId} of ${entry.stream} is missing`);
        return event;
      }),
    );
    const [names, reversed] = await Promise.all([
      this.names.of(events.map(({ meta }) => meta.actor)),
      this.reversed(found, tail),
    ]);
    return found.flatMap(({ entry }, i) => {
      const stored = events[i];
      if (!stored) return [];
      const event = this.shown(stored);
      const { id: reversedBy = null, at: reversedAt = null } = reversed.get(entry.eventId) ?? {};
      return [{ entry, event, actorName: names[i] ?? null, reversedBy, reversedAt }];
    });
  }

  /** In the shape that its type has now; an event that only a newer version knows stays as it is. */
  private shown(stored: StoredEvent): Shown {
    const { type, data, meta } = stored;
    const aggregate = this.types.findAggregate(type);
    if (!aggregate || !this.types.knows(stored)) return { data, meta };
    return { data: toRecorded(aggregate, stored).data, meta };
  }

  /** What the table does not have yet, of the whole store; nothing while that is much. */
  async tailOfLog(accountId: number): Promise<Tail> {
    const { position, end } = await this.table.reached();
    const head = await this.store.head();
    const events = await this.store.readUntil(head, position, TAIL + 1);
    if (events.length > TAIL) return { tail: [], end: end.seq };
    const known = this.known(events).filter(({ meta }) => meta.accountId === accountId);
    return { tail: await this.tailOf(known, end.seq), end: end.seq };
  }

  /** What the table does not have yet of one stream, however much that is. */
  private async tailOfStream(accountId: number, stream: string): Promise<Tail> {
    const [ends] = await query<{ seq: number | null; revision: number | null }>(this.pool, {
      ...ENDS,
      values: [stream],
    });
    const events: StoredEvent[] = [];
    const range = { from: (ends?.revision ?? -1) + 1 };
    for await (const event of this.store.readStream(stream, range)) events.push(event);
    const known = this.known(events).filter(({ meta }) => meta.accountId === accountId);
    const end = ends?.seq ?? -1;
    return { tail: await this.tailOf(known, end), end };
  }

  private async tailOf(events: StoredEvent[], seq: number): Promise<Listing['tail']> {
    const entries = await this.table.next(events, { ...NO_ENTRIES, seq });
    return entries
      .flatMap((entry, i) => {
        const event = events[i];
        return event ? [{ entry, event }] : [];
      })
      .toReversed();
  }

  /** Up to the first event of a newer version: what follows it cannot be told without it. */
  private known(events: StoredEvent[]): StoredEvent[] {
    const unknown = events.findIndex((event) => !this.types.knows(event));
    return unknown < 0 ? events : events.slice(0, unknown);
  }

  private async between(
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

  private async lastBefore(after: CursorKey, end: number): Promise<number> {
    const [row] = await query<{ seq: number }>(this.pool, { ...BEFORE, values: [placeOf(after)] });
    return row ? row.seq - 1 : end;
  }

  /** Which of these are undone, and by what. */
  private async reversed(
    found: Found[],
    tail: Found[],
  ): Promise<Map<string, { id: string; at: string }>> {
    // Only what changes a balance can be undone.
    const ids = found.flatMap(({ entry }) => (entry.stamps === null ? [] : [entry.eventId]));
    const rows =
      ids.length === 0
        ? []
        : await query<{ reverses: string; event_id: string; recorded_at: Date }>(this.pool, {
            ...REVERSED,
            values: [ids],
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

function isBefore({ position }: Entry, after: CursorKey): boolean {
  return isAfter(positionOf(after), position);
}
