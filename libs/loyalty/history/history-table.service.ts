import { Injectable, Logger } from '@nestjs/common';
import pg, { Pool } from 'pg';
import { DamagedHistoryError, getErrorMessage } from '#platform/kernel/errors.js';
import { ThrottledNotify } from '#platform/database/throttled-notify.js';
import {
  toMoveArguments,
  createMovePositionSql,
  OvertakenError,
} from '#platform/event-store/port/subscription-position.js';
import {
  BEGINNING,
  EventStore,
  type EventRef,
  type Position,
  type StoredEvent,
} from '#platform/event-store/port/event-store.js';
import { EventTypes } from '#platform/event-store/port/event-types.js';
import { formatPosition, parsePosition } from '#platform/event-store/port/position.js';
import {
  createEntries,
  NO_ENTRIES,
  type End,
  type HistoryEntry,
  type InheritedFields,
} from './entry.js';

export const HISTORY_SUBSCRIPTION = 'history';
/** The channel that is notified of new entries. */
export const HISTORY_CHANNEL = 'inkpad_history';

/** One statement, so that the position and the last entry are of one moment. */
const PROGRESS = {
  name: 'history_progress',
  text: `select p.position, h.seq, h.latest_recorded_at
         from (select) one
         left join es.positions p on p.subscription = $1
         left join lateral (
           select seq, latest_recorded_at from history order by seq desc limit 1
         ) h on true`,
};

/** Finds the last entries of streams up to a number. By whole index keys: see `createHistoryQuery`. */
const INHERITED = {
  name: 'history_inherited',
  text: `select h.stream, h.revision, h.customer_id, h.card_id, h.balance
         from unnest($1::text[]) as w (stream)
         cross join lateral (
           select * from history x where (x.stream, x.seq) <= (w.stream, $2)
           order by x.stream desc, x.seq desc limit 1
         ) h
         where h.stream = w.stream`,
};

/** Each column with its type and its value in an entry. */
const COLUMNS: [string, string, (entry: HistoryEntry) => unknown][] = [
  ['seq', 'bigint', ({ seq }) => seq],
  ['event_id', 'uuid', ({ eventId }) => eventId],
  ['stream', 'text', ({ stream }) => stream],
  ['revision', 'bigint', ({ revision }) => revision],
  ['position', 'text', ({ position }) => formatPosition(position)],
  ['account_id', 'bigint', ({ accountId }) => accountId],
  ['name', 'text', ({ name }) => name],
  ['recorded_at', 'timestamptz', ({ recordedAt }) => recordedAt],
  ['latest_recorded_at', 'timestamptz', ({ latestRecordedAt }) => latestRecordedAt],
  ['occurred_at', 'timestamptz', ({ occurredAt }) => occurredAt],
  ['channel', 'text', ({ channel }) => channel],
  ['actor', 'text', ({ actor }) => actor],
  ['customer_id', 'bigint', ({ customerId }) => customerId],
  ['customer_card_id', 'bigint', ({ customerCardId }) => customerCardId],
  ['card_id', 'bigint', ({ cardId }) => cardId],
  ['location_id', 'bigint', ({ locationId }) => locationId],
  ['reward_id', 'bigint', ({ rewardId }) => rewardId],
  ['stamps', 'bigint', ({ stamps }) => stamps],
  ['balance', 'bigint', ({ balance }) => balance],
  ['reverses', 'uuid', ({ reverses }) => reverses],
  ['source', 'text', ({ source }) => source],
];

export const ENTRY_COLUMNS = COLUMNS.map(([column]) => column).join(', ');

/**
 * Creates a SELECT of ENTRY_COLUMNS, in the collation of the table, over `toEntryParameters`.
 * @param first the number of the first parameter
 */
export const createSelectSql = (first: number): string => `
  select ${COLUMNS.map(([column, type]) => (type === 'text' ? `${column} collate "C" as ${column}` : column)).join(', ')}
  from unnest(${COLUMNS.map(([, type], i) => `$${i + first}::${type}[]`).join(', ')}) as x (${ENTRY_COLUMNS})`;

/** Creates the SQL over `toEntryParameters`. */
export const createInsertSql = (first: number): string =>
  `insert into history (${ENTRY_COLUMNS}) ${createSelectSql(first)}`;

/**
 * One statement is one transaction: a process that was overtaken writes nothing. A repair may have removed entries
 * after the last event of the log, so that the numbers go on from elsewhere although the position is the same.
 */
const CONTINUES = 'coalesce((select max(seq) from history), -1) = $5';
const ADD = {
  name: 'history_add',
  text: `
    with moved as (${createMovePositionSql(CONTINUES)}), added as (
      ${createInsertSql(6)} where exists (select from moved)
    )
    select from moved`,
};

/** A row of the table, as a query for ENTRY_COLUMNS returns it. */
export type EntryRow = {
  seq: number;
  event_id: string;
  stream: string;
  revision: number;
  position: string;
  account_id: number;
  name: string;
  recorded_at: Date;
  latest_recorded_at: Date;
  occurred_at: Date;
  channel: HistoryEntry['channel'];
  actor: string;
  customer_id: number | null;
  customer_card_id: number | null;
  card_id: number | null;
  location_id: number | null;
  reward_id: number | null;
  stamps: number | null;
  balance: number | null;
  reverses: string | null;
  source: string | null;
};

export function toEntry(row: EntryRow): HistoryEntry {
  return {
    seq: row.seq,
    eventId: row.event_id,
    stream: row.stream,
    revision: row.revision,
    position: parsePosition(row.position),
    accountId: row.account_id,
    name: row.name,
    recordedAt: row.recorded_at.toISOString(),
    latestRecordedAt: row.latest_recorded_at.toISOString(),
    occurredAt: row.occurred_at.toISOString(),
    channel: row.channel,
    actor: row.actor,
    customerId: row.customer_id,
    customerCardId: row.customer_card_id,
    cardId: row.card_id,
    locationId: row.location_id,
    rewardId: row.reward_id,
    stamps: row.stamps,
    balance: row.balance,
    reverses: row.reverses,
    source: row.source,
  };
}

/** The progress of the history. */
export type HistoryProgress = { position: Position; end: End };

/** Entries that follow the table. @property gaps the last event before them that the event store has lost, of each stream */
export type NextEntries = { entries: HistoryEntry[]; gaps: EventRef[] };

/** Writes and reads the table of all events, in the order of the log. */
@Injectable()
export class HistoryTable {
  private readonly log = new Logger('history');
  private readonly announcements: ThrottledNotify;

  constructor(
    private readonly pool: Pool,
    private readonly types: EventTypes,
    private readonly eventStore: EventStore,
  ) {
    this.announcements = new ThrottledNotify(pool, HISTORY_CHANNEL, (error) =>
      this.log.warn(`statistics could not be notified and will poll: ${getErrorMessage(error)}`),
    );
  }

  async getProgress(): Promise<HistoryProgress> {
    const { rows } = await this.pool.query<{
      position: string | null;
      seq: number | null;
      latest_recorded_at: Date | null;
    }>({ ...PROGRESS, values: [HISTORY_SUBSCRIPTION] });
    const { position = null, seq = null, latest_recorded_at: latest = null } = rows[0] ?? {};
    return {
      position: position === null ? BEGINNING : parsePosition(position),
      end:
        seq === null || latest === null
          ? NO_ENTRIES
          : { seq, latestRecordedAt: latest.toISOString() },
    };
  }

  /**
   * Creates the entries of the events that come right after those in the table. What the event store has lost before them
   * is passed by: the balance of such a customer card is not known any more.
   * @param end where the table ends
   */
  async createNextEntries(events: StoredEvent[], end: End): Promise<NextEntries> {
    const { inherited, gaps } = await findInherited(this.pool, events, end);
    const [existing] = gaps.length > 0 ? await this.eventStore.readEvents(gaps) : [];
    if (existing) {
      const reason = `the history lacks event ${existing.revision} of ${existing.stream}`;
      throw new DamagedHistoryError('past', reason);
    }
    for (const { stream, earlier } of gaps) inherited.set(stream, { ...earlier, balance: null });
    return { entries: createEntries(events, this.types, end, inherited), gaps };
  }

  /**
   * Adds entries, and notifies whoever counts them.
   * @param end what they follow
   * @throws OvertakenError when another process has moved the position, and then nothing is written
   */
  async add(from: Position, to: Position, entries: HistoryEntry[], end: End): Promise<void> {
    const moved = await this.pool.query({
      ...ADD,
      values: [
        ...toMoveArguments(HISTORY_SUBSCRIPTION, from, to),
        end.seq,
        ...toEntryParameters(entries),
      ],
    });
    if (moved.rowCount !== 1) throw new OvertakenError();
    if (entries.length > 0) this.announcements.notifyInBackground();
  }
}

type Gap = EventRef & { earlier: Omit<InheritedFields, 'balance'> };

/**
 * Finds what the entries of events inherit from those in the table.
 * @param end where that ends
 * @returns gaps: the events that should come before these in the table, with what earlier ones of their streams pass on
 */
async function findInherited(
  client: pg.Pool,
  events: StoredEvent[],
  { seq }: End,
): Promise<{ inherited: Map<string, InheritedFields>; gaps: Gap[] }> {
  const first = new Map<string, number>();
  for (const { stream, revision } of events) {
    if (!first.has(stream)) first.set(stream, revision);
  }
  const continued = [...first].filter(([, revision]) => revision > 0);
  const inherited = new Map<string, InheritedFields>();
  if (continued.length === 0) return { inherited, gaps: [] };
  const { rows } = await client.query<{
    stream: string;
    revision: number;
    customer_id: number | null;
    card_id: number | null;
    balance: number | null;
  }>({ ...INHERITED, values: [continued.map(([stream]) => stream), seq] });
  const rowByStream = new Map(rows.map((row) => [row.stream, row]));
  const gaps = continued.flatMap(([stream, next]): Gap[] => {
    const row = rowByStream.get(stream);
    const earlier = { customerId: row?.customer_id ?? null, cardId: row?.card_id ?? null };
    if (row?.revision !== next - 1) return [{ stream, revision: next - 1, earlier }];
    inherited.set(stream, { ...earlier, balance: row.balance });
    return [];
  });
  return { inherited, gaps };
}

/** Creates the parameters of `createInsertSql`. */
export function toEntryParameters(entries: HistoryEntry[]): unknown[] {
  return COLUMNS.map(([, , value]) => entries.map(value));
}
