import type { Logger } from '@nestjs/common';
import type { Pool } from 'pg';
import { getErrorMessage } from '#platform/kernel/errors.js';
import { pause } from '#platform/kernel/pause.js';
import {
  createLogStep,
  OvertakenError,
  readPosition,
  renderRetryDelay,
  type Step,
} from '../port/subscription-position.js';
import type { EventStore, Position, StoredEvent } from '../port/event-store.js';
import { followLog, isAboutEvents, type LogFollower } from './follow-log.js';

const POLL_MS = 2_000;
/** Postponed events of one account that are processed before those of another. */
const MAX_EVENTS_PER_ACCOUNT = 500;

export type AccountFollower = Pick<LogFollower, 'batch' | 'gatherMs' | 'shouldStepDown'> & {
  /** The name of its position. */
  subscription: string;
  /** Writes what follows from the events, and takes the step in the same transaction. @throws OvertakenError */
  advance: (step: Step, events: StoredEvent[]) => Promise<void>;
};

const ACCOUNTS = {
  name: 'postponed_events_accounts',
  text: 'select distinct account_id from es.postponed_events where subscription = $1',
};

/** Of the accounts of $2 only the first events are read, however many there are. */
const WAITING_ACCOUNTS = {
  name: 'postponed_events_waiting',
  text: `select known.id as account_id from unnest($2::bigint[]) known (id) where exists (
           select from es.postponed_events p where p.subscription = $1 and p.account_id = known.id)`,
};

/** The first event of each account decides when the account is tried again. */
const DUE_ACCOUNTS = {
  name: 'postponed_events_due',
  text: `select known.id as account_id from unnest($2::bigint[]) known (id) cross join lateral (
           select p.retry_at from es.postponed_events p
           where p.subscription = $1 and p.account_id = known.id order by p.seq limit 1
         ) first where first.retry_at <= now() order by first.retry_at`,
};

const FIRST_OF_ACCOUNT = {
  name: 'postponed_events_first',
  text: `select seq, stream_id, revision, failures from es.postponed_events
         where subscription = $1 and account_id = $2 order by seq limit 1`,
};

const RETRY_LATER = {
  name: 'postponed_events_retry_later',
  text: `update es.postponed_events
         set failures = failures + 1, retry_at = now() + ${renderRetryDelay('failures + 1')}
         where subscription = $1 and account_id = $2 and seq = $3`,
};

type PostponedRow = { seq: number; stream_id: string; revision: number; failures: number };

/**
 * Follows the log for work that is done for each account by itself. An event that fails is postponed, and so are the later
 * ones of its account, which keep their order. All other accounts go on. It is tried again at growing intervals (ADR-0145).
 */
export async function followAccounts(
  eventStore: EventStore,
  pool: Pool,
  follower: AccountFollower,
  log: Logger,
  signal: AbortSignal,
): Promise<void> {
  const accounts = new PostponedAccounts(eventStore, pool, follower, log);
  const steppedDown = new AbortController();
  const following = AbortSignal.any([signal, steppedDown.signal]);
  const follow = followLog(eventStore, accounts.toLogFollower(), log, following);
  await Promise.all([follow.finally(() => steppedDown.abort()), accounts.retry(following)]);
}

/** The accounts whose events wait. Only the process that follows the log adds any, so it knows them all. */
class PostponedAccounts {
  private ids = new Set<number>();

  constructor(
    private readonly eventStore: EventStore,
    private readonly pool: Pool,
    private readonly follower: AccountFollower,
    private readonly log: Logger,
  ) {}

  toLogFollower(): LogFollower {
    return {
      ...this.follower,
      readPosition: async () => {
        // First, so that an account that another process postpones after that is not overlooked: its position has moved.
        const position = await readPosition(this.pool, this.follower.subscription);
        this.ids = await this.findAccounts(ACCOUNTS);
        return position;
      },
      advance: (from, events, to) => this.advance(from, events, to),
      postpone: (from, event, to, error) => this.postpone(from, event, to, error),
    };
  }

  private async advance(from: Position, events: StoredEvent[], to: Position): Promise<void> {
    await this.forgetFinished(events);
    const isWaiting = ({ meta }: StoredEvent) => this.ids.has(meta.accountId);
    const postponed = events.filter(isWaiting).map((event) => toPostponed(event, 0));
    const step = createLogStep(this.follower.subscription, from, to, postponed);
    await this.follower.advance(
      step,
      events.filter((event) => !isWaiting(event)),
    );
  }

  /** Forgets the accounts of these events that have none left. */
  private async forgetFinished(events: StoredEvent[]): Promise<void> {
    const ids = new Set(events.map(({ meta }) => meta.accountId).filter((id) => this.ids.has(id)));
    if (ids.size === 0) return;
    const remainingIds = await this.findAccounts(WAITING_ACCOUNTS, [...ids]);
    for (const id of ids) if (!remainingIds.has(id)) this.ids.delete(id);
  }

  private async postpone(
    from: Position,
    event: StoredEvent,
    to: Position,
    error: unknown,
  ): Promise<void> {
    const { accountId } = event.meta;
    const { subscription } = this.follower;
    await this.follower.advance(createLogStep(subscription, from, to, [toPostponed(event, 1)]), []);
    this.ids.add(accountId);
    this.log.error(
      `event ${event.id} failed: it and the later ones of its account are postponed, the other accounts go on: ${getErrorMessage(error)}`,
      { account_id: accountId },
    );
  }

  /** Processes postponed events when they are due, until the signal aborts. */
  async retry(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      if (!(await this.retryDue(signal))) await pause(POLL_MS, signal);
    }
  }

  /** Retries each account that is due, whatever becomes of the others. @returns whether more is due already */
  private async retryDue(signal: AbortSignal): Promise<boolean> {
    let hasMore = false;
    const report = (error: unknown) => {
      if (error instanceof OvertakenError) return;
      this.log.warn(`postponed events are tried again later: ${getErrorMessage(error)}`);
    };
    try {
      const ids = this.ids.size > 0 ? await this.findAccounts(DUE_ACCOUNTS, [...this.ids]) : [];
      for (const id of ids) {
        hasMore = (await this.retryAccount(id, signal).catch(report)) || hasMore;
      }
    } catch (error) {
      report(error);
    }
    return hasMore;
  }

  /** @returns whether it had no time for all of them */
  private async retryAccount(accountId: number, signal: AbortSignal): Promise<boolean> {
    const { subscription } = this.follower;
    for (let count = 0; count < MAX_EVENTS_PER_ACCOUNT && !signal.aborted; count++) {
      const { rows } = await this.pool.query<PostponedRow>({
        ...FIRST_OF_ACCOUNT,
        values: [subscription, accountId],
      });
      const [first] = rows;
      if (!first) {
        if (count > 0) {
          this.log.log('all postponed events of an account are processed', {
            account_id: accountId,
          });
        }
        return false;
      }
      const { seq, stream_id: stream, revision, failures } = first;
      try {
        const events = await this.eventStore.readEvents([{ stream, revision }]);
        if (events.length === 0) throw new Error(`there is no event ${revision} of ${stream}`);
        const values = [subscription, accountId, seq, failures];
        await this.follower.advance({ kind: 'postponed', values }, events);
      } catch (error) {
        if (!isAboutEvents(error)) throw error;
        await this.pool.query({ ...RETRY_LATER, values: [subscription, accountId, seq] });
        this.log.debug(`a postponed event failed again: ${getErrorMessage(error)}`, {
          account_id: accountId,
        });
        return false;
      }
    }
    return true;
  }

  /** @param ids values of $2 */
  private async findAccounts(
    statement: { name: string; text: string },
    ...ids: number[][]
  ): Promise<Set<number>> {
    const { rows } = await this.pool.query<{ account_id: number }>({
      ...statement,
      values: [this.follower.subscription, ...ids],
    });
    return new Set(rows.map(({ account_id }) => account_id));
  }
}

function toPostponed({ stream, revision, meta }: StoredEvent, failures: 0 | 1) {
  return { accountId: meta.accountId, stream, revision, failures };
}
