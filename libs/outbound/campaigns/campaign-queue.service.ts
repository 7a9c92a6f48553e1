import { Injectable } from '@nestjs/common';
import { Pool, type PoolClient } from 'pg';
import { inTransaction } from '#platform/database/connection.js';
import { LOCKS } from '#platform/database/locks.js';
import type { RetrySchedule } from '#platform/kernel/retry-schedule.js';
import {
  JobQueue,
  LEASED,
  type Job,
  type JobEnd,
  type JobTable,
} from '#platform/database/job-queue.js';
import { ProcessSession } from '#platform/database/process-session.js';
import type { Campaign, CampaignKind } from './campaign.js';
import { insertMessages, type NewMessage } from './new-messages.service.js';
import type { MessageCounts } from './message-recipient.js';

const MINUTE_MS = 60_000;

/** A fault of the service or the database. */
const RETRIES: RetrySchedule = {
  delaysMs: [1_000, 5_000, 30_000, MINUTE_MS, 5 * MINUTE_MS, 10 * MINUTE_MS],
  lastRepeats: true,
  maxRequestedMs: 10 * MINUTE_MS,
  isSpread: false,
};

/** A campaign that is due: an announcement to be addressed to the next customers, or a rule to be checked. */
export type QueuedCampaign = Queued<'announcement'> | Queued<'rule'>;

export type Queued<K extends CampaignKind> = Pick<
  Campaign<K>,
  'kind' | 'id' | 'accountId' | 'title' | 'text' | 'channels' | 'trigger'
> & {
  /** The last customer to whom an announcement was addressed, and whether it was addressed to all. */
  lastCustomerId: number;
  isAddressed: boolean;
  /** When it was claimed, by the clock of the database. */
  dueBy: Date;
} & Progress;

/**
 * Up to where the occasions of a rule were looked for: the last entry of the history, and the time.
 * @property checkedTie the last occasion of that time that was looked at; null: all of them were
 */
export type Progress = { checkedSeq: number; checkedUntil: Date; checkedTie: number | null };

const TABLE: JobTable<QueuedCampaign> = {
  name: 'campaigns',
  key: ['kind', 'id'],
  partition: ['kind'],
  roundRobinBy: 'account_id',
  columns: {
    kind: 'kind',
    id: 'id',
    accountId: 'account_id',
    title: 'title',
    text: 'text',
    channels: 'channels',
    trigger: 'trigger',
    lastCustomerId: 'last_customer_id',
    isAddressed: 'is_addressed',
    checkedSeq: 'checked_seq',
    checkedUntil: 'checked_until',
    checkedTie: 'checked_tie',
    dueBy: 'now()',
  },
};

/** The campaigns that are due or being sent. They are served round robin over the stores, a slice of a campaign at a time. */
@Injectable()
export class CampaignQueue extends JobQueue<QueuedCampaign> {
  constructor(pool: Pool, session: ProcessSession) {
    super(pool, session, TABLE, RETRIES);
  }

  /**
   * Ends a slice: the rest is due after a while, after the campaigns of other stores.
   * @param notBefore when it is due at the earliest
   */
  async endSlice(
    job: Job<QueuedCampaign>,
    delayMs: number,
    notBefore: Date | null = null,
  ): Promise<void> {
    const text = `update campaigns
      set attempts = 0, due_at = greatest(now() + $1 * interval '1 millisecond', $2::timestamptz), process = null
      where ${LEASED}`;
    await this.change(job, 'end_slice', text, [delayMs, notBefore]);
  }

  /**
   * Enqueues the messages of an announcement and ends the slice, in one transaction. Changes nothing when the announcement was
   * changed or cancelled, or somebody else goes on with it.
   * @param last the last customer; null: there are no more
   */
  async address(
    job: Job<QueuedCampaign>,
    messages: NewMessage[],
    last: number | null,
  ): Promise<void> {
    await inTransaction(this.pool, async (client) => {
      const text = `update campaigns
        set state = 'sending', started_at = coalesce(started_at, now()), attempts = 0, due_at = now(), process = null,
          updated_at = now(), last_customer_id = coalesce($1, last_customer_id), is_addressed = $1::bigint is null
        where ${LEASED} and state in ('scheduled', 'sending')`;
      if ((await this.change(job, 'address', text, [last], client)) === 0) return;
      await insertMessages(client, messages);
    });
  }

  /**
   * Locks a rule that is being checked until the transaction ends, and its store, whose rules share the maximum of a week.
   * @returns false when the rule was changed, or somebody else goes on with it
   */
  async lock(job: Job<QueuedCampaign>, client: PoolClient): Promise<boolean> {
    await client.query({
      name: 'campaigns_lock_store',
      text: 'select pg_advisory_xact_lock(hashtextextended($1, $2))',
      values: [`rules of ${job.accountId}`, LOCKS.messageRules],
    });
    const text = `select from campaigns where ${LEASED} for no key update`;
    return (await this.change(job, 'lock', text, [], client)) === 1;
  }

  /** Enqueues the messages of a rule whose occasions were looked for, and makes its next check due. */
  async reach(
    job: Job<QueuedCampaign>,
    messages: NewMessage[],
    { checkedSeq, checkedUntil, checkedTie }: Progress,
    delayMs: number,
    client: PoolClient,
  ): Promise<void> {
    const text = `update campaigns
      set checked_seq = $1, checked_until = $2, checked_tie = $3, attempts = 0,
        due_at = now() + $4 * interval '1 millisecond', process = null
      where ${LEASED}`;
    const values = [checkedSeq, checkedUntil, checkedTie, delayMs];
    await this.change(job, 'reach', text, values, client);
    await insertMessages(client, messages);
  }

  /**
   * Finds a time before which an announcement cannot end, because a message of it waits. Any message that has no outcome yet
   * will do: pages say when the first one is due (`MessageRecipients`).
   * @returns null: it is being sent; undefined: every message has its outcome
   */
  async findWaitEnd({ id }: QueuedCampaign): Promise<Date | null | undefined> {
    const { rows } = await this.pool.query<{ due_at: Date | null }>({
      name: 'announcements_queued',
      text: `select case when process is null then due_at end as due_at from outgoing_messages
             where announcement_id = $1 and state = 'queued' limit 1`,
      values: [id],
    });
    return rows[0]?.due_at;
  }

  /** Ends an announcement whose messages all have their outcome. */
  async end(job: Job<QueuedCampaign>, counts: MessageCounts): Promise<void> {
    const text = `update campaigns
      set state = 'sent', due_at = null, finished_at = now(), updated_at = now(), counts = $1
      where ${LEASED}`;
    await this.change(job, 'end', text, [JSON.stringify(counts)]);
  }

  /** A job is never removed: it is a campaign, which goes on later. */
  override async finish(job: Job<QueuedCampaign>, outcome: JobEnd): Promise<void> {
    const reason = outcome.kind === 'done' ? '' : outcome.error;
    await this.postpone(job, 10 * MINUTE_MS, reason);
  }
}
