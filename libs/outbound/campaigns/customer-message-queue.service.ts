import { Injectable } from '@nestjs/common';
import pg, { Pool } from 'pg';
import {
  JobQueue,
  LEASED,
  type Job,
  type JobOutcome,
  type JobTable,
} from '#platform/database/job-queue.js';
import { ProcessSession } from '#platform/database/process-session.js';
import { MAIL_RETRIES } from '#outbound/messages/mail.js';
import type { HolderChannel, MessageReason } from './message-channel.js';

/** A message to be enqueued. Without a channel it is not sent, for a reason. */
export type NewMessage = {
  accountId: number;
  customerId: number;
  customerCardId: number | null;
  source: { announcementId: number } | { ruleId: number; occasion: string };
  /** Null: that of the announcement. */
  content: { title: string; text: string } | null;
  channel: HolderChannel | null;
  reason: MessageReason | null;
  dueAt: Date;
};

export type QueuedMessage = {
  id: number;
  uuid: string;
  accountId: number;
  customerId: number;
  /** sent: it is still to be recorded in the customer's history. */
  state: 'queued' | 'sent';
  channel: HolderChannel;
  /** The channels that could not send it. */
  refusedChannels: HolderChannel[];
  /** Why the last of them could not, or why it waits. */
  reason: MessageReason | null;
  createdAt: Date;
  handedOverAt: Date | null;
};

const TABLE: JobTable<QueuedMessage> = {
  name: 'customer_messages',
  key: ['id'],
  partition: ['channel'],
  roundRobinBy: 'account_id',
  columns: {
    id: 'id',
    uuid: 'uuid',
    accountId: 'account_id',
    customerId: 'customer_id',
    state: 'state',
    channel: 'channel',
    refusedChannels: 'refused_channels',
    reason: 'reason',
    createdAt: 'created_at',
    handedOverAt: 'handed_over_at',
  },
};

const INSERT = {
  name: 'customer_messages_insert',
  text: `
    insert into customer_messages (account_id, announcement_id, rule_id, occasion, customer_id, customer_card_id,
      title, text, state, channel, reason, due_at, finished_at)
    select m.account_id, m.announcement_id, m.rule_id, m.occasion, m.customer_id, m.customer_card_id, m.title, m.text,
      case when m.channel is null then 'skipped' else 'queued' end, m.channel, m.reason,
      case when m.channel is null then null else m.due_at end,
      case when m.channel is null then now() end
    from jsonb_to_recordset($1) as m (account_id bigint, announcement_id bigint, rule_id bigint, occasion text,
      customer_id bigint, customer_card_id bigint, title text, text text, channel text, reason text,
      due_at timestamptz)
    on conflict do nothing`,
};

/** Enqueues messages, in the caller's transaction. One that is there already, for the same occasion, is not repeated. */
export async function insertMessages(client: pg.ClientBase, messages: NewMessage[]): Promise<void> {
  if (messages.length === 0) return;
  const rows = messages.map((one) => ({
    account_id: one.accountId,
    announcement_id: 'announcementId' in one.source ? one.source.announcementId : null,
    rule_id: 'ruleId' in one.source ? one.source.ruleId : null,
    occasion: 'ruleId' in one.source ? one.source.occasion : null,
    customer_id: one.customerId,
    customer_card_id: one.customerCardId,
    title: one.content?.title ?? null,
    text: one.content?.text ?? null,
    channel: one.channel,
    reason: one.reason,
    due_at: one.dueAt.toISOString(),
  }));
  await client.query({ ...INSERT, values: [JSON.stringify(rows)] });
}

/** The messages to customers that are to be sent or recorded. The stores take turns. */
@Injectable()
export class CustomerMessageQueue extends JobQueue<QueuedMessage> {
  constructor(pool: Pool, session: ProcessSession) {
    super(pool, session, TABLE, MAIL_RETRIES);
  }

  /** Makes the message due at another time, as if it had not been tried. @param reason why, for the list of recipients */
  async moveTo(
    job: Job<QueuedMessage>,
    dueAt: Date,
    reason: MessageReason | null = null,
  ): Promise<void> {
    const text = `update customer_messages
      set due_at = $1, reason = coalesce($2, reason), attempts = attempts - 1, handed_over_at = null, process = null
      where ${LEASED}`;
    await this.change(job, 'move', text, [dueAt, reason]);
  }

  /** Tries again later. The outcome was known, so it may be handed over once more. */
  override async postpone(job: Job<QueuedMessage>, delayMs: number): Promise<void> {
    const text = `update customer_messages
      set due_at = now() + $1 * interval '1 millisecond', handed_over_at = null, process = null where ${LEASED}`;
    await this.change(job, 'postpone', text, [delayMs]);
  }

  /** Makes the message due at once through another channel. @param refusal why the present one cannot send it */
  async redirect(
    job: Job<QueuedMessage>,
    channel: HolderChannel,
    refusal: MessageReason | null,
  ): Promise<void> {
    const text = `update customer_messages
      set channel = $1, attempts = 0, handed_over_at = null, counted_at = null, process = null, due_at = now(),
        reason = coalesce($2, reason),
        refused_channels = case when $2::text is null then refused_channels else refused_channels || channel end
      where ${LEASED}`;
    await this.change(job, 'redirect', text, [channel, refusal]);
  }

  /**
   * Makes the message due at once for the customer who goes on for its recipient, unless that one gets the same: the
   * announcement, or a message of the rule from about the same time.
   */
  async readdress(job: Job<QueuedMessage>, customerId: number): Promise<void> {
    const text = `update customer_messages m
      set customer_id = $1, attempts = 0, counted_at = null, process = null, due_at = now()
      where ${LEASED} and state = 'queued' and not exists (
        select from customer_messages o
        where o.customer_id = $1 and (o.announcement_id = m.announcement_id
          or o.rule_id = m.rule_id and o.state in ('queued', 'sent') and o.created_at > m.created_at - interval '1 day'))`;
    if ((await this.change(job, 'readdress', text, [customerId])) === 1) return;
    await this.end(job, 'skipped', 'merged');
  }

  /**
   * Marks that the message is handed over now.
   * @returns false when the lease has ended, and somebody else goes on
   */
  async handOver(job: Job<QueuedMessage>): Promise<boolean> {
    const text = `update customer_messages set handed_over_at = now() where ${LEASED}`;
    return (await this.change(job, 'hand_over', text)) === 1;
  }

  /** Marks a message as sent. It is due at once, to be recorded. @returns whether the lease had not ended */
  async markSent(
    job: Job<QueuedMessage>,
    customerCardId: number,
    by?: pg.PoolClient,
  ): Promise<boolean> {
    const text = `update customer_messages
      set state = 'sent', finished_at = now(), due_at = now(), attempts = 0, process = null, reason = null,
        customer_card_id = $1, counted_at = case when counted_at is not null then now() end
      where ${LEASED}`;
    return (await this.change(job, 'mark_sent', text, [customerCardId], by)) === 1;
  }

  /** Ends the work on a message that was recorded. */
  async markRecorded(job: Job<QueuedMessage>): Promise<void> {
    await this.change(job, 'record', `update customer_messages set due_at = null where ${LEASED}`);
  }

  /** Gives a message its outcome when it was not sent. One that may have arrived counts on. */
  async end(
    job: Job<QueuedMessage>,
    state: 'failed' | 'skipped',
    reason: MessageReason,
  ): Promise<void> {
    const text = `update customer_messages
      set state = $1, reason = $2, due_at = null, finished_at = now(),
        counted_at = case when $2 = 'unknown' then counted_at end
      where ${LEASED} and state = 'queued'`;
    await this.change(job, 'end', text, [state, reason]);
  }

  override async finish(job: Job<QueuedMessage>, _outcome: JobOutcome): Promise<void> {
    if (job.state === 'sent') await this.postpone(job, RECORD_AGAIN_MS);
    else await this.end(job, 'failed', 'refused');
  }
}

/** The delay after which a message is recorded that could not be for a day. */
const RECORD_AGAIN_MS = 60 * 60_000;
