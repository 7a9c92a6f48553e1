import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { inTransaction } from '#platform/database/connection.js';
import type { RetrySchedule } from '#platform/kernel/retry-schedule.js';
import {
  JobQueue,
  LEASED,
  type Job,
  type JobOutcome,
  type JobTable,
} from '#platform/database/job-queue.js';
import { ProcessSession } from '#platform/database/process-session.js';
import type { AnnouncementState, Audience } from './announcement.js';
import type { HolderChannel } from './message-channel.js';
import { insertMessages, type NewMessage } from './customer-message-queue.service.js';
import type { MessageCounts } from './message-recipient.js';

const MINUTE_MS = 60_000;

/** A fault of the service or the database. */
const RETRIES: RetrySchedule = {
  delaysMs: [1_000, 5_000, 30_000, MINUTE_MS, 5 * MINUTE_MS, 10 * MINUTE_MS],
  lastRepeats: true,
  maxRequestedMs: 10 * MINUTE_MS,
  isSpread: false,
};

export type QueuedAnnouncement = {
  id: number;
  accountId: number;
  state: AnnouncementState;
  channels: HolderChannel[];
  audience: Audience;
  lastCustomerId: number;
  isAddressed: boolean;
};

const TABLE: JobTable<QueuedAnnouncement> = {
  name: 'announcements',
  key: ['id'],
  roundRobinBy: 'account_id',
  columns: {
    id: 'id',
    accountId: 'account_id',
    state: 'state',
    channels: 'channels',
    audience: 'audience',
    lastCustomerId: 'last_customer_id',
    isAddressed: 'is_addressed',
  },
};

/** The announcements that are due or being sent. The stores take turns, a part of an announcement each. */
@Injectable()
export class AnnouncementQueue extends JobQueue<QueuedAnnouncement> {
  constructor(pool: Pool, session: ProcessSession) {
    super(pool, session, TABLE, RETRIES);
  }

  /** Ends a turn: the rest is due after a while, after the announcements of other stores. */
  async endTurn(job: Job<QueuedAnnouncement>, delayMs = 0): Promise<void> {
    const text = `update announcements
      set attempts = 0, due_at = now() + $1 * interval '1 millisecond', process = null where ${LEASED}`;
    await this.change(job, 'end_turn', text, [delayMs]);
  }

  /**
   * Enqueues the messages of a turn and ends it, in one transaction. Changes nothing when the announcement was cancelled,
   * or somebody else goes on with it.
   * @param last the last customer; null: there are no more
   */
  async address(
    job: Job<QueuedAnnouncement>,
    messages: NewMessage[],
    last: number | null,
  ): Promise<void> {
    await inTransaction(this.pool, async (client) => {
      const text = `update announcements
        set state = 'sending', started_at = coalesce(started_at, now()), attempts = 0, due_at = now(), process = null,
          updated_at = now(), last_customer_id = coalesce($1, last_customer_id), is_addressed = $1::bigint is null
        where ${LEASED} and state in ('scheduled', 'sending')`;
      if ((await this.change(job, 'address', text, [last], client)) === 0) return;
      await insertMessages(client, messages);
    });
  }

  /** Tells whether messages of an announcement wait to be sent. */
  async hasQueued({ id }: QueuedAnnouncement): Promise<boolean> {
    const { rowCount } = await this.pool.query({
      name: 'announcements_queued',
      text: `select from customer_messages where announcement_id = $1 and state = 'queued' limit 1`,
      values: [id],
    });
    return rowCount !== 0;
  }

  /** Ends an announcement whose messages all have their outcome. */
  async end(job: Job<QueuedAnnouncement>, counts: MessageCounts): Promise<void> {
    const text = `update announcements
      set state = 'sent', due_at = null, finished_at = now(), updated_at = now(), counts = $1
      where ${LEASED}`;
    await this.change(job, 'end', text, [JSON.stringify(counts)]);
  }

  /** A job is never removed: it is an announcement, which goes on later. */
  override async finish(job: Job<QueuedAnnouncement>, outcome: JobOutcome): Promise<void> {
    const reason = outcome.kind === 'done' ? '' : outcome.error;
    await this.postpone(job, 10 * MINUTE_MS, reason);
  }
}
