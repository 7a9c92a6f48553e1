import { Injectable } from '@nestjs/common';
import pg, { Pool } from 'pg';
import type { RetrySchedule } from '#platform/kernel/retry-schedule.js';
import { JobQueue, LEASED, type Job, type JobTable } from '#platform/database/job-queue.js';
import { ProcessSession } from '#platform/database/process-session.js';
import type { PassChannel, UpdateRequest } from './pass-sender.js';

/** Several stamps within this time are one update. */
const GATHER_MS = 1_000;

type QueuedUpdate = UpdateRequest & { requestNumber: number };

/** Updates are retried without end, so that they arrive soon after an outage of hours. */
const RETRIES: RetrySchedule = {
  delaysMs: [...Array.from({ length: 10 }, (_, i) => 1_000 * 2 ** i), 10 * 60_000],
  lastRepeats: true,
  maxRequestedMs: 60 * 60_000,
  isSpread: true,
};

const REQUEST = {
  name: 'pass_updates_request',
  text: `
    insert into pass_updates as u (channel, target, account_id, priority, due_at)
    select channel, target, account_id, $4, now() + $5 * interval '1 millisecond'
    from unnest($1::text[], $2::text[], $3::bigint[]) as x (channel, target, account_id)
    order by channel, target
    on conflict (channel, target) do update set
      request_number = u.request_number + 1,
      priority = least(u.priority, excluded.priority),
      -- A failing target waits for its next attempt.
      due_at = case when u.attempts > 0 then u.due_at else least(u.due_at, excluded.due_at) end`,
};

/** Stores updates until they are sent: each at least once, and once for several changes in a row. */
@Injectable()
export class PassUpdates extends JobQueue<QueuedUpdate> {
  constructor(pool: Pool, session: ProcessSession) {
    const table: JobTable<QueuedUpdate> = {
      name: 'pass_updates',
      key: ['channel', 'target'],
      partition: ['channel', 'priority'],
      roundRobinBy: 'account_id',
      columns: {
        channel: 'channel',
        target: 'target',
        accountId: 'account_id',
        requestNumber: 'request_number',
      },
    };
    super(pool, session, table, RETRIES);
  }

  /**
   * Requests updates, in the caller's transaction.
   * @param priority 0 for a change that its customer is waiting for, 1 for one of many
   */
  async request(
    client: pg.ClientBase | pg.Pool,
    updates: UpdateRequest[],
    priority: 0 | 1,
  ): Promise<void> {
    if (updates.length === 0) return;
    await client.query({
      ...REQUEST,
      values: [
        updates.map(({ channel }) => channel),
        updates.map(({ target }) => target),
        updates.map(({ accountId }) => accountId),
        priority,
        GATHER_MS,
      ],
    });
  }

  /** Claims updates of a channel. Those that a customer is waiting for come first. */
  async claimByPriority(channel: PassChannel, limit: number): Promise<Job<QueuedUpdate>[]> {
    const urgent = await this.claim(limit, channel, 0);
    if (urgent.length === limit) return urgent;
    return [...urgent, ...(await this.claim(limit - urgent.length, channel, 1))];
  }

  /** Removes an update, or makes it due again when requested meanwhile. */
  override async finish(update: Job<QueuedUpdate>): Promise<void> {
    const text = `
      with done as (delete from pass_updates where ${LEASED} and request_number = $1 returning 1)
      update pass_updates set attempts = 0, due_at = now(), reason = null
      where ${LEASED} and not exists (select from done)`;
    await this.change(update, 'finish', text, [update.requestNumber]);
  }
}
