import type pg from 'pg';
import { DamagedHistoryError } from '#platform/kernel/errors.js';
import { retryUntilAvailable } from '#platform/kernel/retry-until.js';
import { inTransaction } from '#platform/database/connection.js';
import { OvertakenError, readPosition } from '#platform/event-store/port/subscription-position.js';
import type { EventStore, StoredEvent } from '#platform/event-store/port/event-store.js';
import { UnknownEventTypeError, type EventTypes } from '#platform/event-store/port/event-types.js';
import { isAfter, type Position } from '#platform/event-store/port/position.js';
import {
  createEntries,
  NO_ENTRIES,
  type End,
  type HistoryEntry,
  type InheritedFields,
} from './entry.js';
import {
  ENTRY_COLUMNS,
  HISTORY_SUBSCRIPTION,
  HistoryTable,
  createInsertSql,
  createSelectSql,
  toEntryParameters,
} from './history-table.service.js';

const PAGE = 1_000;
/** Limits the output, and the memory for it. */
const MAX_DIFFERENCES = 10_000;

const DIFFERENCES = {
  name: 'history_replay_differences',
  text: `
    select coalesce(l.seq, s.seq) as seq, l.stream as live_stream, l.revision as live_revision,
      s.stream, s.revision, l.event_id is distinct from s.event_id as other,
      (select array_agg(a.key order by a.key) from jsonb_each(to_jsonb(l)) a
       where a.value is distinct from to_jsonb(s) -> a.key) as fields
    from (select ${ENTRY_COLUMNS} from history where seq between $1 and $2) l
    full join (${createSelectSql(3)}) s on s.seq = l.seq
    where (l.*) is distinct from (s.*)
    order by 1`,
};

const CUT = `
  with moved as (
    update es.positions set updated_at = now(),
      position = (select position from history where seq = $2)
    where subscription = $1 and $2 >= 0
  ) delete from es.positions where subscription = $1 and $2 < 0`;

type Pair = {
  seq: number;
  live_stream: string | null;
  live_revision: number | null;
  stream: string | null;
  revision: number | null;
  other: boolean;
  fields: string[] | null;
};

const NO_ENTRY = { live_stream: null, live_revision: null, other: true, fields: null };

/** @property entry the number of the entry, or those of several */
export type HistoryDifference = { entry: string; problem: string };

/**
 * Replays the log into entries of the history, and compares them with the table's, up to where the table was when the
 * replay began. It can replace what differs, in one transaction for each page, while the dispatcher goes on adding.
 */
export class HistoryReplay {
  /** One for each. Neighbours that are missing are one: as a rule, whole parts are. Of a repair, why it ended. */
  readonly differences: HistoryDifference[] = [];
  /** Whether a repair found something to replace. */
  hasReplaced = false;
  /** Why the table has to stay as it is. */
  private reasonToKeep: string | undefined;
  /** Of each stream, about 200 bytes. */
  private readonly inherited = new Map<string, InheritedFields>();
  private end: End = NO_ENTRIES;
  private missingRun: { first: number; last: number } | undefined;

  private constructor(
    private readonly pool: pg.Pool,
    private readonly eventStore: EventStore,
    private readonly types: EventTypes,
    private readonly until: Position,
    private readonly last: number,
    private readonly isRepair: boolean,
  ) {}

  static async begin(
    pool: pg.Pool,
    eventStore: EventStore,
    types: EventTypes,
    { isRepair }: { isRepair: boolean },
  ): Promise<HistoryReplay> {
    const { position, end } = await new HistoryTable(pool, types, eventStore).getProgress();
    return new HistoryReplay(pool, eventStore, types, position, end.seq, isRepair);
  }

  /** The number of entries that the table must have. */
  get count(): number {
    return this.end.seq + 1;
  }

  /**
   * Compares the next page of the log. May be repeated when it fails.
   * @returns the number of its events that the table must have
   */
  async add(page: StoredEvent[]): Promise<number> {
    const events = page.filter(({ position }) => !isAfter(position, this.until));
    if (events.length === 0 || !this.isRepairable) return 0;
    const entries = this.createEntries(events);
    const end = entries?.at(-1);
    if (!entries || !end) return 0;
    const comparable = entries.filter(({ seq }) => seq <= this.last);
    if (comparable.length > 0) await this.compare(comparable);
    for (const { seq, stream, revision } of entries.slice(comparable.length))
      if (!this.isRepair) this.describe({ ...NO_ENTRY, seq, stream, revision });
    for (const { stream, customerId, cardId, balance } of entries)
      this.inherited.set(stream, { customerId, cardId, balance });
    this.end = end;
    return events.length;
  }

  /** Ends the comparison: the table may have more entries than the log, and a repair replaces its end. */
  async finish(): Promise<void> {
    if (!this.isRepairable || this.last === this.end.seq) return;
    if (this.isRepair) await this.replaceEnd();
    else if (this.last > this.end.seq) await this.compare([], this.last);
  }

  /** Keeps the table as it is, and reports why. */
  keepTable(reason: string): void {
    this.reasonToKeep ??= reason;
    this.differences.unshift({ entry: 'the table is kept', problem: reason });
  }

  get isRepairable(): boolean {
    return this.reasonToKeep === undefined;
  }

  /**
   * Where the table does not end with its position, removes what comes after, sets the position back and adds it
   * again, as the dispatcher does. Readers miss only what they missed before, and what came since the replay began.
   */
  private async replaceEnd(): Promise<void> {
    const keptTo = Math.min(this.end.seq, this.last);
    this.hasReplaced = true;
    await inTransaction(this.pool, async (client) => {
      await client.query('set local statement_timeout = 0');
      await client.query('lock table history in share row exclusive mode');
      await client.query('delete from history where seq > $1', [keptTo]);
      await client.query(CUT, [HISTORY_SUBSCRIPTION, keptTo]);
    });
    await this.refill();
  }

  private replace(numbers: number[], entries: HistoryEntry[]): Promise<void> {
    this.hasReplaced = true;
    return inTransaction(this.pool, async (client) => {
      await client.query(
        'delete from history where seq = any ($1) or event_id = any ($2::uuid[])',
        [numbers, entries.map(({ eventId }) => eventId)],
      );
      await client.query(createInsertSql(1), toEntryParameters(entries));
    });
  }

  private async refill(): Promise<void> {
    const table = new HistoryTable(this.pool, this.types, this.eventStore);
    while (isAfter(this.until, await readPosition(this.pool, HISTORY_SUBSCRIPTION))) {
      const { position, end } = await table.getProgress();
      const events = await retryUntilAvailable(() => this.eventStore.readAll(position, PAGE));
      const last = events.at(-1);
      if (!last) return;
      const { entries } = await table.createNextEntries(events, end);
      await table.add(position, last.position, entries, end).catch((error: unknown) => {
        if (!(error instanceof OvertakenError)) throw error;
      });
    }
  }

  /** Creates the entries of the next events; undefined when the log does not say what they are. */
  private createEntries(events: StoredEvent[]): HistoryEntry[] | undefined {
    try {
      return createEntries(events, this.types, this.end, this.inherited);
    } catch (error) {
      if (!(error instanceof UnknownEventTypeError || error instanceof DamagedHistoryError))
        throw error;
      this.keepTable(error.message);
      return undefined;
    }
  }

  private async compare(entries: HistoryEntry[], to = entries.at(-1)?.seq ?? -1): Promise<void> {
    const from = this.end.seq + 1;
    const { rows } = await this.pool.query<Pair>({
      ...DIFFERENCES,
      values: [from, to, ...toEntryParameters(entries)],
    });
    if (!this.isRepair) return rows.forEach((pair) => this.describe(pair));
    if (rows.length === 0) return;
    const numbers = rows.map(({ seq }) => seq);
    await this.replace(
      numbers,
      numbers.map((seq) => entries[seq - from]).filter((entry) => entry !== undefined),
    );
  }

  private describe(pair: Pair): void {
    const { seq } = pair;
    const isMissing = pair.live_stream === null;
    const run = this.missingRun;
    if (isMissing && run?.last === seq - 1) {
      run.last = seq;
      const entry = `numbers ${run.first} to ${seq}`;
      this.differences[this.differences.length - 1] = { entry, problem: 'are missing' };
      return;
    }
    this.missingRun = undefined;
    if (this.differences.length > MAX_DIFFERENCES) return;
    if (this.differences.length === MAX_DIFFERENCES) {
      const problem = 'are not listed: too much differs';
      this.differences.push({ entry: `numbers from ${seq} on`, problem });
      return;
    }
    if (isMissing) this.missingRun = { first: seq, last: seq };
    this.differences.push({ entry: `number ${seq}`, problem: describePair(pair) });
  }
}

function describePair({ stream, revision, other, fields, ...live }: Pair): string {
  const event = nameEvent(stream, revision);
  if (live.live_stream === null) return `${event} is missing`;
  const existing = nameEvent(live.live_stream, live.live_revision);
  if (stream === null) return `${existing} is not in the log`;
  if (other) return `is ${existing}, and in the log ${event}`;
  return `${existing} is not what the log says (${fields?.join(', ')})`;
}

function nameEvent(stream: string | null, revision: number | null): string {
  return `event ${revision} of ${stream}`;
}
