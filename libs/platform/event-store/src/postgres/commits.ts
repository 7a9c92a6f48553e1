import { Logger } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { getErrorMessage, UnavailableError, UnknownOutcomeError } from '#kernel/errors.js';
import { Batcher, BatchSlots, type BatchLimits, type End } from '#database/batcher.js';
import { inTransaction, isConnectionLoss, isOutage, toConnectError } from '#database/connection.js';
import type { DatabasePool } from '#database/database-pool.js';
import { isRolledBackForRetry } from '#database/sqlstate.js';
import type { ThrottledNotify } from '#database/throttled-notify.js';
import { Lanes, START_WITHIN_MS } from '../commands/lane.js';
import { checkCap, listCapNames } from '../port/caps.js';
import { ConflictError, type Commit, type Head } from '../port/event-store.js';
import { isRefusal, toCommitError } from '../port/refusals.js';
import {
  createEraseStatement,
  getHeads,
  prepareWrites,
  type PreparedWrite,
} from './commit-arguments.js';
import { createCommitStatement, type CommitRow } from './commit-statement.js';

const SETTLE_WITHIN_MS = 30_000;
/** How long a commit is retried that others cause to be rolled back. PostgreSQL itself waits as long for a lock. */
const RETRY_FOR_MS = 10_000;
/**
 * A call of `es.commit` costs as much as dozens of commits, so commits that wait for one share the next. Not while only
 * a few are in progress, nor while a group takes longer than PostgreSQL works on it: because of a slow disk or a lock.
 */
const GROUPS: BatchLimits = { alwaysRun: 4, maxRunning: 4, waitMs: START_WITHIN_MS };
const GROUP_SIZE = 64;
const getStuckMs = (size: number) => 2 + size / 10;

/** Counts those of some events that are stored where a commit puts them. */
const IS_STORED = `
  select count(*) as n from jsonb_to_recordset($1) as x(s text, r bigint, id uuid)
  where x.id = (select e.event_id from es.events e where e.stream_id = x.s and e.revision = x.r)`;

type Results = PromiseSettledResult<Head[]>[];

/** Commits to PostgreSQL: independent commits in groups, on connections that it keeps, and others in transactions. */
export class Commits {
  private readonly log = new Logger(Commits.name);
  /** In the database, commits with the same cap wait for one lock, each on a connection: none would be left for others. */
  private readonly caps = new Lanes<never>();

  constructor(
    private readonly pool: DatabasePool,
    private readonly announcements: ThrottledNotify,
  ) {}

  /** Commits, together with others if it writes streams and at most claims values for them. */
  add(commit: Commit): Promise<Head[]> {
    if (!commit.releases?.length && !needsTransaction(commit)) return this.groups.add(commit);
    const startedAt = performance.now();
    return this.commitAlone(commit).catch((error) => this.settle(commit, error, startedAt));
  }

  /**
   * Commits independent commits in one transaction. Rejects those that lost a race or whose claim is taken; the others
   * succeed. With claims or a commit to several streams it is all or nothing, because nobody may claim for a stream that
   * has moved, nor write a part of a commit; after that each is committed alone.
   */
  private readonly commitGroup = (group: Commit[], end: End<Head[]>): undefined => {
    const startedAt = performance.now();
    let isAtomic = true;
    if (group.length > 1) {
      const claims = group.flatMap((one) => toClaimKeys(one));
      if (new Set(claims).size < claims.length) {
        this.settleAll(group, undefined, startedAt, end);
        return;
      }
      isAtomic = claims.length > 0 || group.some(({ writes }) => writes.length > 1);
    }
    this.append(group, isAtomic, (error, results) => {
      if (results) end(results);
      else this.settleAll(group, error, startedAt, end);
    });
  };

  private readonly groups = new Batcher<Commit, Head[]>(
    new BatchSlots(1, getStuckMs),
    GROUP_SIZE,
    this.commitGroup,
    GROUPS,
  );

  /** Finds out what became of the commits of a group after an error, or commits each alone. */
  private settleAll(group: Commit[], error: unknown, startedAt: number, end: End<Head[]>): void {
    const isAlone = group.length === 1;
    if (!isAlone && error !== undefined) {
      this.log.debug(
        `a group of ${group.length} appends failed and is repeated one by one: ${getErrorMessage(error)}`,
      );
    }
    // Nothing was sent. Retrying each alone would add up their waiting times.
    if (error instanceof UnavailableError) {
      end(group.map(() => ({ status: 'rejected', reason: error })));
      return;
    }
    const failure = isAlone || isConnectionLoss(error) || isOutage(error) ? error : undefined;
    void Promise.allSettled(group.map((one) => this.settle(one, failure, startedAt))).then(end);
  }

  /**
   * Repeats a commit that has failed. After a lost connection it is unknown whether the commit happened. Repeating the
   * identical append settles that: either it succeeds now, or the stream has moved and our event ids show by whom.
   * @param failure undefined: it was not tried alone
   * @param startedAt of the first try, which counts towards the limit
   */
  private async settle(commit: Commit, failure: unknown, startedAt: number): Promise<Head[]> {
    let error = failure;
    let refusal: unknown;
    let isUnknown = false;
    for (let attempt = 0; ; attempt++) {
      if (isRefusal(error)) {
        if (!isUnknown) throw error;
        refusal = error;
      } else if (isOutage(error) && !isUnknown) {
        refusal = toUnavailableError(error);
        isUnknown = true;
      } else if (error !== undefined) {
        isUnknown = assertRepeatable(error, isUnknown, startedAt);
        await new Promise((resolve) => setTimeout(resolve, Math.min(50 * 2 ** attempt, 1_000)));
      }
      try {
        if (isUnknown && (await this.isStored(commit))) {
          this.announcements.notifyInBackground();
          return getHeads(prepareWrites(commit));
        }
        if (!refusal) return await this.commitAlone(commit);
      } catch (cause) {
        error = cause;
        continue;
      }
      throw refusal;
    }
  }

  private commitAlone(commit: Commit): Promise<Head[]> {
    if (needsTransaction(commit)) return this.commitInTransaction(commit);
    return new Promise((resolve, reject) => {
      this.append([commit], true, (error, results) => {
        const [result] = results ?? [];
        if (result?.status === 'fulfilled') resolve(result.value);
        else reject(error);
      });
    });
  }

  private async commitInTransaction(commit: Commit): Promise<Head[]> {
    const { accountId, cap, erasures = [], sideEffects = [] } = commit;
    const prepared = prepareWrites(commit);
    const write = async (client: PoolClient) => {
      try {
        if (cap) await checkCap((text, values) => client.query(text, values), cap);
        const statement = createCommitStatement([commit], [prepared], true);
        const { rows } = await client.query<CommitRow>(statement);
        const won = rows[0]?.won;
        if (won !== true && !(won && won.length > 0)) throw new ConflictError();
        if (erasures.length > 0) await client.query(createEraseStatement(accountId, erasures));
        for (const { text, values } of sideEffects) await client.query(text, values);
      } catch (error) {
        throw toCommitError(error);
      }
    };
    await this.caps.runExclusively(listCapNames(cap), () => inTransaction(this.pool, write));
    this.announcements.notifyInBackground();
    return getHeads(prepared);
  }

  /**
   * Appends commits with one statement.
   * @param atomic nothing is written unless everything is
   * @param onEnd gets the results, or an error
   */
  private append(
    commits: Commit[],
    atomic: boolean,
    onEnd: (error: unknown, results?: Results) => void,
  ): void {
    const prepared: PreparedWrite[][] = [];
    let statement: ReturnType<typeof createCommitStatement>;
    try {
      for (const commit of commits) prepared.push(prepareWrites(commit));
      statement = createCommitStatement(commits, prepared, atomic);
    } catch (error) {
      onEnd(error);
      return;
    }
    this.pool.acquireForCommit((cause, client) => {
      if (!client) {
        onEnd(toConnectError(cause));
        return;
      }
      client.query<CommitRow>(statement, (error: Error | null, result) => {
        if (error) {
          this.pool.releaseAfterCommit(client, isConnectionLoss(error) ? error : undefined);
          onEnd(toCommitError(error));
          return;
        }
        const won = result.rows[0]?.won || [];
        const isWritten = won === true || won.length > 0;
        // Before their callers continue: building responses takes long enough for it to arrive.
        const announcing = isWritten ? this.announcements.notify(client) : undefined;
        if (announcing) void this.releaseAfter(announcing, client);
        else this.pool.releaseAfterCommit(client);
        if (atomic && !isWritten) onEnd(new ConflictError());
        else onEnd(undefined, toResults(prepared, won));
      });
    });
  }

  private async releaseAfter(announcing: Promise<void>, client: PoolClient): Promise<void> {
    try {
      await announcing;
      this.pool.releaseAfterCommit(client);
    } catch (error) {
      this.pool.releaseAfterCommit(client, isConnectionLoss(error) ? error : undefined);
    }
  }

  private async isStored(commit: Commit): Promise<boolean> {
    const events = commit.writes.flatMap(({ stream, expected, events: own }) =>
      own.map(({ id }, i) => ({ s: stream, r: (expected?.revision ?? -1) + 1 + i, id })),
    );
    const { rows } = await this.pool.query<{ n: number }>(IS_STORED, [JSON.stringify(events)]);
    return rows[0]?.n === events.length;
  }
}

function toResults(prepared: PreparedWrite[][], won: string[] | true): Results {
  const streams = won === true ? undefined : new Set(won);
  const results: Results = [];
  for (const writes of prepared) {
    const isWritten = !streams || writes.every(({ write }) => streams.has(write.stream));
    if (isWritten) results.push({ status: 'fulfilled', value: getHeads(writes) });
    else results.push({ status: 'rejected', reason: new ConflictError() });
  }
  return results;
}

/**
 * Checks that a commit may be repeated after an error.
 * @returns whether it is unknown what became of it
 * @throws UnavailableError, UnknownOutcomeError, or the error itself
 */
function assertRepeatable(error: unknown, wasUnknown: boolean, startedAt: number): boolean {
  const isLost = isConnectionLoss(error);
  const isUnreachable = error instanceof UnavailableError || isOutage(error);
  if (isUnreachable && !wasUnknown) throw error;
  if (!isLost && !isUnreachable && !isRolledBackForRetry(error)) throw error;
  const isUnknown = wasUnknown || isLost;
  if (!isUnknown && performance.now() > startedAt + RETRY_FOR_MS) {
    throw new UnavailableError('The database is too busy', { cause: error });
  }
  if (isUnknown && performance.now() > startedAt + SETTLE_WITHIN_MS) {
    throw new UnknownOutcomeError('the outcome of a commit stays unknown', { cause: error });
  }
  return isUnknown;
}

/** Tells whether a commit needs statements besides its own. */
function needsTransaction({ cap, erasures, sideEffects }: Commit): boolean {
  return cap !== undefined || (erasures?.length ?? 0) + (sideEffects?.length ?? 0) > 0;
}

/** Lists what a commit claims. Two of a group must not claim the same: one statement would not notice. */
function toClaimKeys({ accountId, claims = [] }: Commit): string[] {
  return claims.map(({ kind, value }) => `${accountId} ${kind} ${value.toString('hex')}`);
}

/**
 * Creates the error for a commit that wrote nothing, unless the server stopped in the middle of it: the caller checks
 * that first.
 */
function toUnavailableError(cause: unknown): UnavailableError {
  return new UnavailableError('The database cannot take changes now', { cause });
}
