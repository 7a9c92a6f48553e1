import type { Pool, PoolClient } from 'pg';
import { getNowMs } from '#platform/kernel/clock.js';
import type { FieldIssues } from '#platform/kernel/issues.js';
import type { RetrySchedule } from '#platform/kernel/retry-schedule.js';
import { QUERY_TIMEOUT_MS } from './database-client.js';
import type { ProcessSession } from './process-session.js';

/** Longer than an attempt can last. The lease of a process that falls silent ends sooner, with its session. */
export const LEASE_SECONDS = 60;
/** How long a process trusts a lease. Shorter, because clocks do not run alike. */
const TRUST_LEASE_MS = 55_000;

/**
 * A table of jobs, with the columns `due_at`, `attempts`, `reason` and `process`. `due_at` is the end of the lease during
 * an attempt, and null when there is nothing to do. The triggers of `announce_jobs` announce what becomes due. `process`
 * holds the lease. One index has the columns `partition`, `roundRobinBy` and `due_at`, in this order, and another one `process`.
 */
export type JobTable<Item> = {
  name: string;
  /** The properties that identify a job. */
  key: (keyof Item)[];
  /** The columns that divide the table into queues of their own. */
  partition?: string[];
  /** The column over whose values jobs are claimed round robin, so that one with many jobs does not delay the others. */
  roundRobinBy?: string;
  /** The columns, or expressions, of the properties of a job. */
  columns: Record<keyof Item, string>;
};

/**
 * @property attempts includes this one
 * @property leaseUntil tells one claim of a job from every other
 * @property claimedAt when that was requested, by `performance.now()`
 * @property process the number of this process; null: the lease does not end with it
 */
type Claim = { attempts: number; leaseUntil: string; claimedAt: number; process: number | null };

export type Job<Item> = Item & Claim;

/**
 * - done: nothing is left to do, even if there was nothing to do at all
 * - failed: retried later, after the given time if the other side requests one
 * - refused: a retry would not help; with issues for a person where there are some
 * - unsent: nothing was sent on purpose, since what was read went out of date, the process ends or another one sends it. It is
 *   no failure: the job is due again in a moment, and the attempt does not count
 */
export type JobOutcome =
  | { kind: 'done' }
  | { kind: 'unsent' }
  | { kind: 'failed'; error: string; retryInMs?: number }
  | { kind: 'refused'; error: string; issues?: FieldIssues };

/** An outcome with which a job ends. */
export type JobEnd = Exclude<JobOutcome, { kind: 'unsent' }>;

/** Stands in a statement for the condition that a claim's lease has not ended. */
export const LEASED = ':leased';

/**
 * Keeps jobs until they are done. A process that dies during an attempt causes another one, as its lease ends with it, so
 * everything is done at least once. A process that is frozen loses its leases as well, after 20 s (ADR-0100). A result that comes after the lease changes nothing.
 */
export class JobQueue<Item extends object> {
  /** The value of `roundRobinBy` that was served last, by partition. */
  private readonly lastServed = new Map<string, number>();
  private readonly claimText: string;
  private lastLeaseMs = 0;
  /** The ends of leases that the server may have granted although nobody got to know. */
  private readonly lostLeases = new Set<number>();

  constructor(
    protected readonly pool: Pool,
    protected readonly session: ProcessSession,
    private readonly table: JobTable<Item>,
    readonly schedule: RetrySchedule,
  ) {
    this.claimText = createClaim(table);
    session.addLeases({ name: table.name, holder: 'process', endsAt: 'due_at' });
  }

  /** Registers a function that is called when jobs of a partition become due within seconds. @returns how to end it */
  onDue(listener: (delayMs: number) => void, partition: readonly string[] = []): () => void {
    return this.session.onDue([this.table.name, ...partition].join(':'), listener);
  }

  /**
   * Claims due jobs of a partition for a minute; none if the statement arrives when this process has given it up. Claims
   * those of lost leases again.
   */
  async claim(limit: number, ...partition: unknown[]): Promise<Job<Item>[]> {
    if (this.lostLeases.size > 0) await this.releaseLost();
    const queue = partition.join(' ');
    const after = this.lastServed.get(queue) ?? 0;
    const { name, roundRobinBy } = this.table;
    const { leaseHolder: process } = this.session;
    const claimedAt = performance.now();
    const { rows } = await this.runWithLease((leaseUntil) =>
      this.pool.query<Item & Pick<Claim, 'attempts' | 'leaseUntil'> & { servedValue: number }>({
        name: `${name}_claim`,
        text: this.claimText,
        values: [
          limit,
          process,
          ...partition,
          ...(roundRobinBy === undefined ? [] : [after]),
          leaseUntil,
        ],
      }),
    );
    const served = rows.map(({ servedValue }) => servedValue);
    if (roundRobinBy !== undefined) this.lastServed.set(queue, findLastServed(after, served));
    return rows.map((row) => ({ ...row, claimedAt, process }));
  }

  /** Leases jobs until a time that no other lease of this process has, by which those are found whose response is lost. */
  protected async runWithLease<R>(work: (leaseUntil: Date) => Promise<R>): Promise<R> {
    const leaseMs = Math.max(Math.ceil(getNowMs()) + LEASE_SECONDS * 1_000, this.lastLeaseMs + 1);
    this.lastLeaseMs = leaseMs;
    try {
      return await work(new Date(leaseMs));
    } catch (error) {
      this.lostLeases.add(leaseMs);
      throw error;
    }
  }

  /** Releases jobs of lost leases. Again with each claim until the leases end: the server may grant them after their error. */
  private async releaseLost(): Promise<void> {
    const { name } = this.table;
    await this.pool.query({
      name: `${name}_release_lost`,
      text: `update ${name} set attempts = greatest(attempts - 1, 0), due_at = now(), process = null
             where process = $1 and due_at = any ($2::timestamptz[])`,
      values: [this.session.number, [...this.lostLeases].map((leaseMs) => new Date(leaseMs))],
    });
    for (const leaseMs of this.lostLeases)
      if (leaseMs < getNowMs()) this.lostLeases.delete(leaseMs);
  }

  /**
   * Tells whether nobody else can have claimed the job since. A process that was frozen, or lost its session, does not know:
   * it asks right before it sends what must not arrive twice.
   */
  isLeased({ claimedAt, process }: Job<Item>): boolean {
    const hasEnded = process !== null && !this.session.isHeldSince(claimedAt);
    return !hasEnded && performance.now() - claimedAt < TRUST_LEASE_MS;
  }

  /** Removes a job that is done or given up. */
  async finish(job: Job<Item>, _outcome: JobEnd): Promise<void> {
    await this.change(job, 'finish', `delete from ${this.table.name} where ${LEASED}`);
  }

  /** Ends the lease, and makes the job due again later. */
  async postpone(job: Job<Item>, delayMs: number, reason: string): Promise<void> {
    const text = `update ${this.table.name}
      set due_at = now() + $1 * interval '1 millisecond', reason = $2, process = null where ${LEASED}`;
    await this.change(job, 'postpone', text, [delayMs, reason]);
  }

  /** Ends the lease, makes the job due at once or after a delay, and does not count the attempt. */
  async release(job: Job<Item>, delayMs = 0): Promise<void> {
    const text = `update ${this.table.name}
      set attempts = greatest(attempts - 1, 0), due_at = now() + $1 * interval '1 millisecond', process = null
      where ${LEASED}`;
    await this.change(job, 'release', text, [delayMs]);
  }

  /** Changes a claimed job. @returns how many rows were affected */
  protected async change(
    job: Job<Item>,
    change: string,
    text: string,
    values: unknown[] = [],
    by: Pool | PoolClient = this.pool,
  ): Promise<number> {
    const { name, key, columns } = this.table;
    const conditions = key.map((property, i) => `${columns[property]} = $${values.length + i + 1}`);
    conditions.push(`due_at = $${values.length + key.length + 1}::timestamptz`);
    const { rowCount } = await by.query({
      name: `${name}_${change}`,
      text: text.replaceAll(LEASED, conditions.join(' and ')),
      values: [...values, ...key.map((property) => job[property]), job.leaseUntil],
    });
    return rowCount ?? 0;
  }
}

/**
 * Creates the statement that claims jobs. $1 limit, $2 the process, then the partition, then the value of `roundRobinBy` served
 * last, and the end of the lease. Does nothing when it arrives after its process has given it up. A table that has just been
 * filled has no statistics: written as joins, the statement would read all that is due once for each job. So jobs that round
 * robin has chosen are found one by one (no index helps with `is not distinct from`), and locked jobs by where they are.
 */
function createClaim<Item>({
  name,
  key,
  partition = [],
  roundRobinBy,
  columns,
}: JobTable<Item>): string {
  const keys = key.map((property) => columns[property]);
  const queue = partition.map((column, i) => `q.${column} = $${i + 3} and`).join(' ');
  const leaseUntil = `$${partition.length + (roundRobinBy === undefined ? 3 : 4)}::timestamptz`;
  const properties = Object.entries<string>(columns).map(([to, from]) => `${from} as "${to}"`);
  const due =
    roundRobinBy === undefined
      ? `due as (
      select q.ctid from ${name} q where ${queue} q.due_at <= now()
      order by q.due_at limit $1 for update skip locked
    )`
      : `${createRoundRobin({ name, keys, roundRobinBy, queue, last: `$${partition.length + 3}` })}, due as (
      select q.ctid from round_robin r cross join lateral (
        select q.ctid from ${name} q
        where ${keys.map((column) => `q.${column} = r.${column}`).join(' and ')} and q.due_at is not distinct from r.due_at
        for update skip locked) q
    )`;
  return `
    with recursive ${due}
    update ${name} q set attempts = q.attempts + 1, process = $2,
      due_at = ${leaseUntil}
    where q.ctid = any (array(select ctid from due))
      and now() <= ${leaseUntil} - interval '${LEASE_SECONDS * 1_000 - QUERY_TIMEOUT_MS} milliseconds'
    returning ${properties.join(', ')}, q.attempts, q.due_at::text as "leaseUntil", ${roundRobinBy ?? 0} as "servedValue"`;
}

/**
 * Creates the part of a claim that selects jobs round robin: one of each value, beginning after the one served last, then a
 * second one of each. Reads no more values than it needs, since their number is unbounded: a limit of n is reached
 * within the first n² jobs, up to n of each value.
 */
function createRoundRobin({
  name,
  keys,
  roundRobinBy,
  queue,
  last,
}: Record<'name' | 'roundRobinBy' | 'queue' | 'last', string> & { keys: string[] }): string {
  const createWalk = (walk: string, range: string, start: string) => {
    const findFirst = (conditions: string) => `select q.${roundRobinBy} from ${name} q
        where ${queue} q.due_at is not null and ${conditions} order by q.${roundRobinBy} limit 1`;
    return `${walk} as (
      (${findFirst(start)})
      union all
      select (${findFirst(`q.${roundRobinBy} > w.${roundRobinBy} ${range}`)})
      from ${walk} w where w.${roundRobinBy} is not null
    )`;
  };
  const upToLast = `q.${roundRobinBy} <= ${last}`;
  return `${createWalk('later', '', `q.${roundRobinBy} > ${last}`)},
    ${createWalk('earlier', `and ${upToLast}`, upToLast)}, round_robin as (
      select * from (
        select d.*
        from (select * from later union all select * from earlier) w
        cross join lateral (
          select ${keys.map((column) => `q.${column}`).join(', ')}, q.due_at, q.${roundRobinBy} as taker,
            row_number() over (order by q.due_at) as rank
          from ${name} q
          where ${queue} q.${roundRobinBy} = w.${roundRobinBy} and q.due_at <= now()
          order by q.due_at limit $1
        ) d
        limit $1 * $1
      ) d
      order by rank, taker <= ${last}, taker limit $1
    )`;
}

/**
 * Finds the account that round robin served last. Accounts are served in the order of their ids.
 * @param after the one served last the time before
 * @param served the ones served now, in any order
 * @returns the one to continue after
 */
export function findLastServed(after: number, served: number[]): number {
  const [last] = served.toSorted((a, b) => Number(a > after) - Number(b > after) || b - a);
  return last ?? after;
}
