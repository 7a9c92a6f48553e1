import type pg from 'pg';
import { ConfigError } from '#kernel/config-error.js';
import { BEGINNING, type EventStore, type StoredEvent } from '#event-store/port/event-store.js';
import { UnknownEventTypeError, type EventTypes } from '#event-store/port/event-types.js';
import { retryUntilAvailable } from '#kernel/retry-until.js';
import { parsePosition } from '#event-store/port/position.js';
import type { LogTable } from '#event-store/verification/rebuild.js';
import type { Difference } from '#event-store/verification/staging-diff.js';
import { STAGING, type LiveTable } from '#event-store/verification/staging-tables.js';
import {
  createEntries,
  NO_ENTRIES,
  type End,
  type HistoryEntry,
  type InheritedFields,
} from './entry.js';
import {
  toEntryParameters,
  HISTORY_SUBSCRIPTION,
  createInsertSql,
  findInherited,
  type HistoryProgress,
} from './history-table.service.js';

const PAGE = 1_000;
const COMPARE_BATCH_SIZE = 50_000;
/** Limits the output: a table that has nothing to do with the log need not be described row by row. */
const MAX_DIFFERENCES = 10_000;

const TABLE: LiveTable = { schema: 'public', name: 'history' };

const INSERT = { name: 'rebuild_history', text: createInsertSql(1) };
const END = `
  select position, seq, latest_recorded_at from ${STAGING}.history order by seq desc limit 1`;

/** The last number up to which both tables must agree: the one behind the other says how far. */
const COMPARABLE = `
  with bound as (
    select least(
      (select position from es.checkpoints where subscription = $1),
      (select position from ${STAGING}.history order by seq desc limit 1)
    ) as position
    where exists (select from es.checkpoints where subscription = $1)
      and exists (select from ${STAGING}.history)
  )
  select greatest(
    (select seq from ${STAGING}.history h where h.position <= b.position order by seq desc limit 1),
    (select seq from public.history h where h.position <= b.position order by seq desc limit 1)
  ) as upto
  from bound b`;

const PAIRS = `
  select coalesce(l.seq, s.seq) as seq, l.stream as live_stream, l.revision as live_revision,
    s.stream, s.revision, l.event_id is distinct from s.event_id as other,
    (select array_agg(a.key order by a.key) from jsonb_each(to_jsonb(l)) a
     where a.value is distinct from to_jsonb(s) -> a.key) as fields
  from (select * from public.history where seq > $1 and seq <= $2) l
  full join (select * from ${STAGING}.history where seq > $1 and seq <= $2) s on s.seq = l.seq
  where (l.*) is distinct from (s.*)
  order by 1`;

const MOVE = `
  insert into es.checkpoints as c (subscription, position)
  select $1, position from (${END}) e
  on conflict (subscription) do update
    set position = greatest(c.position, excluded.position), updated_at = now()`;

type Pair = {
  seq: number;
  live_stream: string | null;
  live_revision: number | null;
  stream: string | null;
  revision: number | null;
  other: boolean;
  fields: string[] | null;
};

/** Rebuilds the table of the history from the log, in a staging table. */
export class HistoryStagingBuilder implements LogTable {
  readonly table = TABLE;
  private readonly inherited = new Map<string, InheritedFields>();
  private end = NO_ENTRIES;
  private written: Promise<unknown> = Promise.resolve();

  constructor(
    /** Connected as the tables' owner, with STAGING as its search path, so that `history` is the staging table. */
    private readonly client: pg.ClientBase,
    private readonly eventStore: EventStore,
    private readonly types: EventTypes,
  ) {}

  async countExpectedEvents(): Promise<number> {
    const { rows } = await this.client.query<{ n: number }>(
      'select coalesce(max(seq) + 1, 0) as n from public.history',
    );
    return rows[0]?.n ?? 0;
  }

  /**
   * Adds the next page of the log to a staging table without indexes. The inherited fields of each stream are kept in
   * memory from the first page on, about 200 bytes for each.
   */
  async add(events: StoredEvent[]): Promise<void> {
    const entries = this.createEntries(events, this.end, this.inherited);
    for (const { stream, customerId, cardId, balance } of entries) {
      this.inherited.set(stream, { customerId, cardId, balance });
    }
    this.end = entries.at(-1) ?? this.end;
    // It is written while the caller reads the next page and this one is prepared.
    await this.written;
    this.written = this.insert(entries);
    this.written.catch(() => undefined);
  }

  /** Waits until all added pages are written. */
  async flush(): Promise<void> {
    await this.written;
  }

  /** Catches up to the end of the log, from the end of the staging table. */
  async catchUp(patient: boolean): Promise<void> {
    let { position, end } = await this.getProgress();
    for (let full = true; full;) {
      const events = await (patient
        ? retryUntilAvailable(() => this.eventStore.readAll(position, PAGE))
        : this.eventStore.readAll(position, PAGE));
      const last = events.at(-1);
      if (!last) return;
      const { inherited } = await findInherited(this.client, events, end);
      const entries = this.createEntries(events, end, inherited);
      await this.insert(entries);
      position = last.position;
      end = entries.at(-1) ?? end;
      full = events.length === PAGE;
    }
  }

  /** Compares both tables up to where both are: they only grow at the end. */
  async compare(after: number): Promise<{ comparedTo: number; differences: Difference[] }> {
    const { rows } = await this.client.query<{ upto: number | null }>(COMPARABLE, [
      HISTORY_SUBSCRIPTION,
    ]);
    const upTo = Math.max(after, rows[0]?.upto ?? after);
    let differences: Difference[] = [];
    for (let from = after; from < upTo; from += COMPARE_BATCH_SIZE) {
      const to = Math.min(upTo, from + COMPARE_BATCH_SIZE);
      const { rows: pairs } = await this.client.query<Pair>(PAIRS, [from, to]);
      differences = differences.concat(describePairs(pairs));
      if (differences.length >= MAX_DIFFERENCES && to < upTo) {
        differences.push(
          createDifference(
            `numbers ${to + 1} to ${upTo}`,
            'are not compared any more: too much differs',
          ),
        );
        break;
      }
    }
    return { comparedTo: upTo, differences };
  }

  /**
   * Moves the checkpoint to the end of the staging table, where the subscription then continues. It gives up what it
   * was about to write to the live table. Nothing that the live table has is missing, since it is locked and the log
   * can be read at least as far.
   */
  async takeOver(): Promise<void> {
    await this.client.query(MOVE, [HISTORY_SUBSCRIPTION]);
  }

  private createEntries(
    events: StoredEvent[],
    end: End,
    inherited: Map<string, InheritedFields>,
  ): HistoryEntry[] {
    try {
      return createEntries(events, this.types, end, inherited);
    } catch (error) {
      if (!(error instanceof UnknownEventTypeError)) throw error;
      throw new ConfigError(`${error.message}. Nothing was changed.`, { cause: error });
    }
  }

  private insert(entries: HistoryEntry[]): Promise<unknown> {
    return this.client.query({ ...INSERT, values: toEntryParameters(entries) });
  }

  private async getProgress(): Promise<HistoryProgress> {
    const { rows } = await this.client.query<{
      position: string;
      seq: number;
      latest_recorded_at: Date;
    }>(END);
    const [row] = rows;
    if (!row) return { position: BEGINNING, end: NO_ENTRIES };
    const { position, seq, latest_recorded_at: latest } = row;
    return {
      position: parsePosition(position),
      end: { seq, latestRecordedAt: latest.toISOString() },
    };
  }
}

/** Neighbours that are missing are one difference: as a rule, whole parts are. */
function describePairs(pairs: Pair[]): Difference[] {
  const differences: Difference[] = [];
  for (let i = 0; i < pairs.length; i++) {
    const pair = pairs[i];
    if (!pair) break;
    if (pair.live_stream !== null) {
      differences.push(describePair(pair));
      continue;
    }
    let { seq: last } = pair;
    for (; pairs[i + 1]?.live_stream === null && pairs[i + 1]?.seq === last + 1; i++) last++;
    differences.push(
      last > pair.seq
        ? createDifference(`numbers ${pair.seq} to ${last}`, 'are missing')
        : createDifference(
            `number ${pair.seq}`,
            `${nameEvent(pair.stream, pair.revision)} is missing`,
          ),
    );
  }
  return differences;
}

function describePair({ seq, stream, revision, other, fields, ...live }: Pair): Difference {
  const event = nameEvent(live.live_stream, live.live_revision);
  if (stream === null) return createDifference(`number ${seq}`, `${event} is not in the log`);
  if (other) {
    return createDifference(
      `number ${seq}`,
      `is ${event}, and in the log ${nameEvent(stream, revision)}`,
    );
  }
  return createDifference(
    `number ${seq}`,
    `${event} is not what the log says (${fields?.join(', ')})`,
  );
}

function nameEvent(stream: string | null, revision: number | null): string {
  return `event ${revision} of ${stream}`;
}

function createDifference(stream: string, what: string): Difference {
  return { table: TABLE.name, stream, problem: what, isMoving: false };
}
