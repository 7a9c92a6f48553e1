import { Injectable } from '@nestjs/common';
import pg, { Pool } from 'pg';
import { Batcher } from '#platform/database/batcher.js';
import {
  JobQueue,
  LEASED,
  type Job,
  type JobEnd,
  type JobTable,
} from '#platform/database/job-queue.js';
import { ProcessSession } from '#platform/database/process-session.js';
import { MAIL_RETRIES } from './mail.js';
import type { HolderChannel } from './message-channel.js';

/**
 * - card_link: the link of a card, which somebody has asked for
 * - campaign: what a store writes to a customer
 * - mail: an e-mail of the service to its users, which is deleted once it was sent
 */
export type OutgoingKind = 'card_link' | 'campaign' | 'mail';

export type OutgoingMessage = {
  id: number;
  uuid: string;
  kind: OutgoingKind;
  /** 0: the service itself. */
  accountId: number;
  /** Null: an e-mail of the service. */
  customerId: number | null;
  customerCardId: number | null;
  /** sent: it is still to be recorded in the customer's history. */
  state: 'queued' | 'sent';
  channel: HolderChannel;
  /** The channels that could not send it. */
  refusedChannels: HolderChannel[];
  /** The channels through which only a user may send it. */
  heldChannels: HolderChannel[];
  /** Whether a signup asked for it without a phone number: then only a user may send it by SMS. */
  phoneMissing: boolean;
  /** Why the last channel could not send it, or why it waits. */
  reason: string | null;
  sealed: Buffer | null;
  giveUpAt: Date;
  handedOverAt: Date | null;
};

const TABLE: JobTable<OutgoingMessage> = {
  name: 'outgoing_messages',
  key: ['id'],
  partition: ['kind', 'channel'],
  roundRobinBy: 'account_id',
  columns: {
    id: 'id',
    uuid: 'uuid',
    kind: 'kind',
    accountId: 'account_id',
    customerId: 'customer_id',
    customerCardId: 'customer_card_id',
    state: 'state',
    channel: 'channel',
    refusedChannels: 'refused_channels',
    heldChannels: 'held_channels',
    phoneMissing: 'phone_missing',
    reason: 'reason',
    sealed: 'sealed',
    giveUpAt: 'give_up_at',
    handedOverAt: 'handed_over_at',
  },
};

/**
 * Renders SQL for the quiet hours and the time zone of the store of a message `m`, as one text.
 * @param lock keeps others from changing them until the transaction ends
 */
export function renderHours(lock: '' | 'for share'): string {
  return `concat_ws(' ', (select a.time_zone from accounts a where a.id = m.account_id ${lock}),
    (select row(s.quiet_from, s.quiet_to)::text from message_settings s where s.account_id = m.account_id ${lock}))`;
}

const BATCHES_AT_ONCE = 2;
const BATCH_SIZE = 100;

/**
 * The messages that are to be sent or recorded, each kind and channel in a queue of its own: neither a slow provider nor a
 * store with many customers delays another kind. Stores are served round robin (ADR-0052).
 */
@Injectable()
export class OutgoingMessages extends JobQueue<OutgoingMessage> {
  private readonly sent = new Batcher<SentMessage, boolean>(
    BATCHES_AT_ONCE,
    BATCH_SIZE,
    async (messages) => {
      const marked = new Set(await this.markAllSent(messages, this.pool));
      return messages.map((message) => ({ status: 'fulfilled', value: marked.has(message) }));
    },
  );
  private readonly recorded = new Batcher<Job<OutgoingMessage>, void>(
    BATCHES_AT_ONCE,
    BATCH_SIZE,
    async (jobs) => {
      await this.pool.query({
        name: 'outgoing_messages_mark_recorded',
        text: `update outgoing_messages m set due_at = null, process = null
          from unnest($1::bigint[], $2::timestamptz[]) x (id, lease) where m.id = x.id and m.id = any ($1) and m.due_at = x.lease`,
        values: [jobs.map(({ id }) => id), jobs.map(({ leaseUntil }) => leaseUntil)],
      });
      return jobs.map(() => ({ status: 'fulfilled', value: undefined }));
    },
  );

  constructor(pool: Pool, session: ProcessSession) {
    super(pool, session, TABLE, MAIL_RETRIES);
  }

  /**
   * Makes the message due at another time, as if it had not been tried. Forgets why it waited before, but not why a channel
   * refused it, which is its outcome if no other one sends it.
   * @param hours those by which it waits: after a change of them it is due at once, since the change has not found it waiting
   */
  async wait(
    job: Job<OutgoingMessage>,
    dueAt: Date,
    { reason = null, hours }: { reason?: string | null; hours?: string | undefined } = {},
  ): Promise<void> {
    const text = `update outgoing_messages m
      set due_at = case when $3::text is null or $3 = ${renderHours('for share')} then $1 else now() end,
        attempts = attempts - 1, handed_over_at = null, process = null,
        reason = case when refused_channels = '{}' then $2 else coalesce($2, reason) end
      where ${LEASED}`;
    await this.change(job, 'wait', text, [dueAt, reason, hours]);
  }

  /** Tries again later. The outcome was known, so it may be handed over once more. A campaign has codes for reasons. */
  override async postpone(
    job: Job<OutgoingMessage>,
    delayMs: number,
    reason: string,
  ): Promise<void> {
    const text = `update outgoing_messages
      set due_at = now() + $1 * interval '1 millisecond', handed_over_at = null, process = null,
        reason = case when kind = 'campaign' then reason else $2 end
      where ${LEASED}`;
    await this.change(job, 'postpone', text, [delayMs, reason]);
  }

  /** Makes the message due at once through another channel. @param refused whether the present one cannot send it, and why */
  async redirect(
    job: Job<OutgoingMessage>,
    channel: HolderChannel,
    refused: { reason: string | null } | null = null,
  ): Promise<void> {
    const text = `update outgoing_messages
      set channel = $1, attempts = 0, handed_over_at = null, counted_at = null, process = null, due_at = now(),
        reason = case when kind = 'campaign' then coalesce($2, reason) else reason end,
        refused_channels = case when $3 then refused_channels || channel else refused_channels end
      where ${LEASED}`;
    await this.change(job, 'redirect', text, [channel, refused?.reason ?? null, refused !== null]);
  }

  /**
   * Makes the message due at once for the customer who goes on for its recipient, unless that one gets the same: the
   * announcement, or a message of the rule from about the same time. Whoever could not get the announcement before has what the
   * other one had by now, such as an address, and is tried again.
   */
  async readdress(job: Job<OutgoingMessage>, customerId: number): Promise<void> {
    const text = `update outgoing_messages m
      set customer_id = $1, attempts = 0, counted_at = null, process = null, due_at = now()
      where ${LEASED} and state = 'queued' and not exists (
        select from outgoing_messages o
        where o.kind = 'campaign' and o.customer_id = $1 and (o.announcement_id = m.announcement_id
          or o.rule_id = m.rule_id and o.state in ('queued', 'sent') and o.created_at > m.created_at - interval '1 day'))`;
    if ((await this.change(job, 'readdress', text, [customerId])) === 1) return;
    const again = `update outgoing_messages o
      set state = 'queued', channel = m.channel, reason = null, refused_channels = '{}', attempts = 0, due_at = now(),
        finished_at = null
      from (select announcement_id, channel from outgoing_messages where ${LEASED} and state = 'queued') m
      where o.customer_id = $1 and o.announcement_id = m.announcement_id and o.state in ('skipped', 'failed')
        and o.reason is distinct from 'unknown'`;
    await this.change(job, 'readdress_again', again, [customerId]);
    await this.end(job, 'skipped', 'merged');
  }

  /**
   * Marks a message as sent. One of a campaign stays leased, to be recorded.
   * @returns whether the lease had not ended
   */
  markSent(job: Job<OutgoingMessage>, details: Partial<SentDetails> = {}): Promise<boolean> {
    return this.sent.add({ job, ...details });
  }

  /** Does the same for several. @returns those whose lease had not ended */
  async markAllSent<M extends SentMessage>(messages: M[], by: pg.ClientBase | Pool): Promise<M[]> {
    const { rows } = await by.query<{ id: number }>({
      name: 'outgoing_messages_mark_sent',
      text: `update outgoing_messages m
        set state = 'sent', finished_at = now(), reason = null, provider_id = x.provider_id,
          customer_card_id = coalesce(x.customer_card_id, m.customer_card_id),
          counted_at = case when m.counted_at is not null then now() end,
          due_at = case when m.kind = 'campaign' then m.due_at end,
          process = case when m.kind = 'campaign' then m.process end
        from unnest($1::bigint[], $2::timestamptz[], $3::bigint[], $4::text[]) x (id, lease, customer_card_id, provider_id)
        where m.id = x.id and m.id = any ($1) and m.due_at = x.lease
        returning m.id`,
      values: [
        messages.map(({ job }) => job.id),
        messages.map(({ job }) => job.leaseUntil),
        messages.map(({ customerCardId = null }) => customerCardId),
        messages.map(({ providerId = null }) => providerId),
      ],
    });
    const ids = new Set(rows.map(({ id }) => id));
    return messages.filter(({ job }) => ids.has(job.id));
  }

  /** Ends the work on a message that was recorded. */
  markRecorded(job: Job<OutgoingMessage>): Promise<void> {
    return this.recorded.add(job);
  }

  /**
   * Gives a message its outcome when it was not sent. One that may have arrived counts on.
   * @param state queued: it is held, until a user sends it
   */
  async end(
    job: Job<OutgoingMessage>,
    state: 'queued' | 'failed' | 'skipped',
    reason: string,
    channel = job.channel,
  ): Promise<void> {
    const text = `update outgoing_messages
      set state = $1, reason = $2, channel = $3, due_at = null, process = null,
        finished_at = case when $1 <> 'queued' then now() end,
        counted_at = case when $2 = 'unknown' then counted_at end
      where ${LEASED} and state = 'queued'`;
    await this.change(job, 'end', text, [state, reason, channel]);
  }

  /**
   * Gives up the channel of a message. One of a campaign is looked at once more, to go through the next channel or to end. One
   * that was sent never comes here: it is recorded, or again once the lease has ended.
   */
  override async finish(job: Job<OutgoingMessage>, outcome: JobEnd): Promise<void> {
    if (job.kind === 'mail') return this.deleteMail(job, outcome.kind === 'done');
    if (job.kind === 'campaign') return this.redirect(job, job.channel, { reason: 'refused' });
    await this.end(job, 'failed', outcome.kind === 'done' ? '' : outcome.error);
  }

  /**
   * Deletes an e-mail that was sent or given up, and records the outcome where it announces a retirement. One that was
   * sent even after the lease, since nobody has to send it again.
   */
  private async deleteMail({ id, leaseUntil }: Job<OutgoingMessage>, isSent: boolean) {
    await this.pool.query({
      name: 'outgoing_messages_delete_mail',
      text: `
        with gone as (
          delete from outgoing_messages where id = $1 and kind = 'mail' and ($2 or due_at = $3::timestamptz)
          returning uuid
        )
        update api_retirement_announcements n set ended_at = now(), outcome = case when $2 then 'sent' else 'given_up' end
        from gone where n.mail_id = gone.uuid`,
      values: [id, isSent, leaseUntil],
    });
  }
}

/** @property customerCardId the card that shows it, or whose page it leads to @property providerId what the SMS provider calls it */
export type SentDetails = { customerCardId: number | null; providerId: string | null };
type SentMessage = { job: Job<OutgoingMessage> } & Partial<SentDetails>;
