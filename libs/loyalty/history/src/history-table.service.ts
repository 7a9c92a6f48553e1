import { Injectable } from '@nestjs/common';
import pg, { Pool } from 'pg';
import {
  toMoveArguments,
  createMoveCheckpointSql,
  OvertakenError,
} from '#event-store/port/checkpoint.js';
import { BEGINNING, type Position, type StoredEvent } from '#event-store/port/event-store.js';
import { EventTypes } from '#event-store/port/event-types.js';
import { formatPosition, parsePosition } from '#event-store/port/position.js';
import {
  createEntries,
  NO_ENTRIES,
  type End,
  type HistoryEntry,
  type InheritedFields,
} from './entry.js';

export const HISTORY_SUBSCRIPTION = 'history';

/** One statement, so that the checkpoint and the last entry are of one moment. */
const PROGRESS = {
  name: 'history_progress',
  text: `select c.position, h.seq, h.latest_recorded_at
         from (select) one
         left join es.checkpoints c on c.subscription = $1
         left join lateral (
           select seq, latest_recorded_at from history order by seq desc limit 1
         ) h on true`,
};

const INHERITED = {
  name: 'history_inherited',
  text: `select h.stream, h.customer_id, h.card_id, h.balance
         from unnest($1::text[], $2::bigint[]) as w (stream, revision)
         cross join lateral (
           select * from history x where x.stream = w.stream and x.revision = w.revision limit 1
         ) h`,
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
 * Creates the SQL over `toEntryParameters`.
 * @param first the number of the first parameter
 */
export const createInsertSql = (first: number): string => `
  insert into history (${ENTRY_COLUMNS})
  select x.* from unnest(${COLUMNS.map(([, type], i) => `$${i + first}::${type}[]`).join(', ')}) as x`;

/**
 * One statement is one transaction: a process that was overtaken writes nothing. A rebuild may have put another table
 * in place, whose numbers go on from elsewhere although the checkpoint is the same.
 */
const CONTINUES = 'coalesce((select max(seq) from history), -1) = $5';
const ADD = {
  name: 'history_add',
  text: `
    with moved as (${createMoveCheckpointSql(CONTINUES)}), added as (
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

/** Writes and reads the table of all events, in the order of the log. */
@Injectable()
export class HistoryTable {
  constructor(
    private readonly pool: Pool,
    private readonly types: EventTypes,
  ) {}

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

  /** Creates the entries of the events that come right after those in the table. @param end where that ends */
  async createNextEntries(events: StoredEvent[], end: End): Promise<HistoryEntry[]> {
    return createEntriesAfter(this.pool, events, this.types, end);
  }

  /**
   * @param end what the entries follow
   * @throws OvertakenError when another process has moved the checkpoint, and then nothing is written
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
  }
}

/**
 * @param client whose search path says which table of the history
 * @param end where that ends
 */
export async function createEntriesAfter(
  client: pg.ClientBase | pg.Pool,
  events: StoredEvent[],
  types: EventTypes,
  end: End,
): Promise<HistoryEntry[]> {
  const first = new Map<string, number>();
  for (const { stream, revision } of events) {
    if (!first.has(stream)) first.set(stream, revision);
  }
  const continued = [...first].filter(([, revision]) => revision > 0);
  return createEntries(events, types, end, await findInherited(client, continued));
}

/** @param continued streams, each with the revision after its last entry */
async function findInherited(
  client: pg.ClientBase | pg.Pool,
  continued: [string, number][],
): Promise<Map<string, InheritedFields>> {
  if (continued.length === 0) return new Map();
  const { rows } = await client.query<{
    stream: string;
    customer_id: number | null;
    card_id: number | null;
    balance: number | null;
  }>({
    ...INHERITED,
    values: [continued.map(([stream]) => stream), continued.map(([, revision]) => revision - 1)],
  });
  return new Map(
    rows.map(({ stream, customer_id: customerId, card_id: cardId, balance }) => [
      stream,
      { customerId, cardId, balance },
    ]),
  );
}

/** Creates the parameters of `createInsertSql`. */
export function toEntryParameters(entries: HistoryEntry[]): unknown[] {
  return COLUMNS.map(([, , value]) => entries.map(value));
}
