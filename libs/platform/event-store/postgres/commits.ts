import { Logger } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { getErrorMessage, UnavailableError } from '#platform/kernel/errors.js';
import { Batcher, BatchSlots, type BatchLimits, type End } from '#platform/database/batcher.js';
import {
  inTransaction,
  isConnectionLoss,
  isOutage,
  toConnectError,
} from '#platform/database/connection.js';
import type { DatabasePool } from '#platform/database/database-pool.js';
import {
  isUnknownAfterLoss,
  retryWhileUnknown,
  type IsUnknownAfter,
} from '#platform/database/retry-while-unknown.js';
import { isRolledBackForRetry } from '#platform/database/sqlstate.js';
import type { ThrottledNotify } from '#platform/database/throttled-notify.js';
import { Lanes, START_WITHIN_MS } from '../commands/lane.js';
import { checkCap, listCapNames } from '../port/caps.js';
import { ConflictError, type Commit, type Head } from '../port/event-store.js';
import { createEraseStatement } from '../personal-keys/erase-statement.js';
import { isCommitConflict, toCommitError } from '../port/commit-errors.js';
import { getHeads, prepareWrites, type PreparedWrite } from './commit-arguments.js';
import { createCommitStatement, type CommitRow } from './commit-statement.js';

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
    return this.commitUntilKnown(commit, performance.now());
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
      const claims = group.flatMap((commit) => toClaimKeys(commit));
      if (new Set(claims).size < claims.length) {
        this.commitEach(group, undefined, startedAt, end);
        return;
      }
      isAtomic = claims.length > 0 || group.some(({ writes }) => writes.length > 1);
    }
    this.append(group, isAtomic, (error, results) => {
      if (results) end(results);
      else this.commitEach(group, error, startedAt, end);
    });
  };

  private readonly groups = new Batcher<Commit, Head[]>(
    new BatchSlots(1, getStuckMs),
    GROUP_SIZE,
    this.commitGroup,
    GROUPS,
  );

  /** Finds out what became of the commits of a group after an error, or commits each alone. */
  private commitEach(group: Commit[], error: unknown, startedAt: number, end: End<Head[]>): void {
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
    const isOfEach = isAlone || isConnectionLoss(error) || isOutage(error);
    const commitFirst = isOfEach ? () => Promise.reject(error as Error) : undefined;
    const commits = group.map((commit) => this.commitUntilKnown(commit, startedAt, commitFirst));
    void Promise.allSettled(commits).then(end);
  }

  /**
   * Commits until it is known what became of it. After a lost connection the events tell whether they are ours that are
   * stored, or another commit has taken their place.
   * @param startedAt of the first try, which counts towards the limit
   * @param commitFirst the first try
   */
  private commitUntilKnown(
    commit: Commit,
    startedAt: number,
    commitFirst = () => this.commitAlone(commit),
  ): Promise<Head[]> {
    let commitNow = commitFirst;
    const attempt = async (isUnknown: boolean): Promise<Head[]> => {
      const earlier = isUnknown ? await this.findStored(commit) : undefined;
      if (earlier) return earlier;
      try {
        return await commitNow();
      } catch (error) {
        // A conflict may be due to an earlier try, and a server without resources may have stopped after it had committed.
        if (isUnknown ? !isCommitConflict(error) : !isOutage(error)) throw error;
        const find = () => this.findStored(commit);
        const heads = await retryWhileUnknown(find, { isUnknown: true, startedAt });
        if (heads) return heads;
        if (isCommitConflict(error)) throw error;
        throw new UnavailableError('The database cannot take changes now', { cause: error });
      } finally {
        commitNow = () => this.commitAlone(commit);
      }
    };
    return retryWhileUnknown(attempt, { startedAt, isUnknownAfter });
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
        if (cap) await checkCap(client, cap);
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
      this.pool.assertConfirmsCommits();
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

  /** Finds the heads that a commit led to. @returns undefined when it is not stored */
  private async findStored(commit: Commit): Promise<Head[] | undefined> {
    const events = commit.writes.flatMap(({ stream, expected, events: own }) =>
      own.map(({ id }, i) => ({ s: stream, r: (expected?.revision ?? -1) + 1 + i, id })),
    );
    const { rows } = await this.pool.query<{ n: number }>(IS_STORED, [JSON.stringify(events)]);
    if (rows[0]?.n !== events.length) return undefined;
    this.announcements.notifyInBackground();
    return getHeads(prepareWrites(commit));
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

/** Repeats a commit also after others have caused it to be rolled back. */
const isUnknownAfter: IsUnknownAfter = (error, wasUnknown, elapsedMs) => {
  if (wasUnknown || !isRolledBackForRetry(error))
    return isUnknownAfterLoss(error, wasUnknown, elapsedMs);
  if (elapsedMs <= RETRY_FOR_MS) return false;
  throw new UnavailableError('The database is too busy', { cause: error });
};

/** Tells whether a commit needs statements besides its own. */
function needsTransaction({ cap, erasures, sideEffects }: Commit): boolean {
  return cap !== undefined || (erasures?.length ?? 0) + (sideEffects?.length ?? 0) > 0;
}

/** Lists what a commit claims. Two of a group must not claim the same: one statement would not notice. */
function toClaimKeys({ accountId, claims = [] }: Commit): string[] {
  return claims.map(({ kind, value }) => `${accountId} ${kind} ${value.toString('hex')}`);
}
