import { Injectable } from '@nestjs/common';
import pg, { Pool } from 'pg';
import { inTransaction } from '#platform/database/connection.js';
import { WindowCounts } from '#platform/database/window-counts.js';
import {
  JobQueue,
  LEASED,
  type Job,
  type JobOutcome,
  type JobTable,
} from '#platform/database/job-queue.js';
import { ProcessSession } from '#platform/database/process-session.js';
import { takeStep, type Step } from '#platform/event-store/port/subscription-position.js';
import type { StoredEvent } from '#platform/event-store/port/event-store.js';
import type { MessageTable } from '#loyalty/accounts/message-counts.js';
import { SAME_REQUEST_MS } from '#loyalty/customers/card-links.js';
import {
  MESSAGE_REQUEST_TTL_MS,
  findMessageRequests,
  type CardMessageState,
  type IssuedCard,
  type MessageChannel,
  type MessageRequest,
} from './card-message.js';
import { MAIL_RETRIES } from './mail.js';
import {
  releaseReservation,
  reserveMessage,
  type MessageLimits,
  type ReachedLimit,
} from './message-limits.service.js';

export const CARD_MESSAGES = 'card messages';

/** Starts to send the messages of a store that comes from another instance, which has sent the earlier ones. */
export async function startMessages(pool: Pool, accountId: number): Promise<void> {
  await pool.query(
    `insert into card_message_cutoffs as s (account_id, since) values ($1, now())
     on conflict (account_id) do update set since = excluded.since`,
    [accountId],
  );
}

/** Names the card of a message request that came before it: the customer's creation precedes the card's issue. */
const NAME_CARDS = {
  name: 'card_messages_name_cards',
  text: `update card_messages m set customer_card_id = i.card_id, due_at = now()
         from unnest($1::bigint[], $2::bigint[]) as i (customer_id, card_id)
         where m.customer_id = i.customer_id and m.customer_card_id is null`,
};

/**
 * Enqueues message requests, except those from before the store came from another instance, and those that repeat
 * another. The channel is a guess, so that neither kind of message waits for the other's server.
 */
const ENQUEUE = {
  name: 'card_messages_enqueue',
  text: `insert into card_messages
           (id, account_id, customer_id, customer_card_id, requested_at, channel, due_at, held_channels, phone_missing)
         select w.id, w.account_id, w.customer_id, w.card_id, w.at,
           case when c.id is not null and c.email is null then 'sms' else 'email' end,
           case when w.card_id is null then null else now() end,
           coalesce(h.channels, '{}'), coalesce(h.phone_missing, false)
         from unnest($1::uuid[], $2::bigint[], $3::bigint[], $4::bigint[], $5::timestamptz[], $8::text[])
           as w (id, account_id, customer_id, card_id, at, causation_id)
         left join customer_names c on c.id = w.customer_id
         left join signup_holds h on h.account_id = w.account_id and h.causation_id = w.causation_id
         where w.at > now() - $6 * interval '1 millisecond'
           and not exists (select from card_message_cutoffs s where s.account_id = w.account_id and s.since > w.at)
           and not exists (
             select from card_messages m
             where m.customer_card_id = w.card_id and m.requested_at <= w.at
               and m.requested_at > w.at - $7 * interval '1 millisecond')
         on conflict (id) do nothing`,
};

export type QueuedMessage = {
  id: string;
  accountId: number;
  customerCardId: number;
  channel: MessageChannel;
  mailRefused: boolean;
  /** The channels through which only a user may send it. */
  heldChannels: MessageChannel[];
  /** Whether a signup asked for it without a phone number: then only a user may send it by SMS. */
  phoneMissing: boolean;
  enqueuedAt: Date;
};

const TABLE: JobTable<QueuedMessage> & { name: MessageTable } = {
  name: 'card_messages',
  key: ['id'],
  partition: ['channel'],
  roundRobinBy: 'account_id',
  columns: {
    id: 'id',
    accountId: 'account_id',
    customerCardId: 'customer_card_id',
    channel: 'channel',
    mailRefused: 'mail_refused',
    heldChannels: 'held_channels',
    phoneMissing: 'phone_missing',
    enqueuedAt: 'enqueued_at',
  },
};

/**
 * Stores which card links are queued, and their outcomes. It has ids only: recipient and text are looked up when a
 * message is sent, so that an erased person is gone from here as well.
 */
@Injectable()
export class CardMessages extends JobQueue<QueuedMessage> {
  constructor(
    pool: Pool,
    session: ProcessSession,
    private readonly counts: WindowCounts,
  ) {
    super(pool, session, TABLE, MAIL_RETRIES);
  }

  /** Enqueues the requests of events of the log, and takes the step. @throws OvertakenError */
  async advance(step: Step, events: StoredEvent[]): Promise<void> {
    const { requests, issued } = findMessageRequests(events);
    if (requests.length + issued.length === 0) return takeStep(this.pool, step);
    await inTransaction(this.pool, async (client) => {
      await takeStep(client, step);
      if (issued.length > 0) await this.nameCards(client, issued);
      if (requests.length > 0) await this.enqueue(client, requests);
    });
  }

  private async nameCards(client: pg.PoolClient, issued: IssuedCard[]): Promise<void> {
    await client.query({
      ...NAME_CARDS,
      values: [issued.map((one) => one.customerId), issued.map((one) => one.customerCardId)],
    });
  }

  private async enqueue(client: pg.PoolClient, requests: MessageRequest[]): Promise<void> {
    await client.query({
      ...ENQUEUE,
      values: [
        requests.map(({ id }) => id),
        requests.map(({ accountId }) => accountId),
        requests.map(({ customerId }) => customerId),
        requests.map(({ customerCardId }) => customerCardId),
        requests.map(({ at }) => at),
        MESSAGE_REQUEST_TTL_MS,
        SAME_REQUEST_MS,
        requests.map(({ causationId }) => causationId),
      ],
    });
  }

  /** Counts a message within the limits of a day. @returns the limit that has been reached */
  reserve(
    message: Job<QueuedMessage>,
    { channel, to }: { channel: MessageChannel; to: string },
    limits: MessageLimits,
  ): Promise<ReachedLimit | null> {
    const limited = { ...message, table: TABLE.name, channel, to };
    return reserveMessage(this.pool, this.counts, limited, limits);
  }

  /** Releases the reservation when nothing was handed over. */
  releaseReservation(
    message: Job<QueuedMessage>,
    { channel, to }: { channel: MessageChannel; to: string },
  ): Promise<void> {
    const limited = { ...message, table: TABLE.name, channel, to };
    return releaseReservation(this.pool, this.counts, limited);
  }

  /** Makes the message due at once through another channel. */
  async redirect(
    message: Job<QueuedMessage>,
    channel: MessageChannel,
    mailRefused: boolean,
  ): Promise<void> {
    const text = `update card_messages set channel = $1, mail_refused = $2, counted_at = null, due_at = now()
      where ${LEASED}`;
    await this.change(message, 'redirect', text, [channel, mailRefused]);
  }

  override finish(message: Job<QueuedMessage>, outcome: JobOutcome): Promise<void> {
    if (outcome.kind === 'done') return this.record(message, 'sent', {});
    return this.record(message, 'failed', { reason: outcome.error });
  }

  /** Records the final state of a message. */
  async record(
    message: Job<QueuedMessage>,
    state: Exclude<CardMessageState, 'queued'>,
    { reason = null, providerId = null }: { reason?: string | null; providerId?: string | null },
  ): Promise<void> {
    const text = `
      update card_messages
      set state = $1, due_at = null, finished_at = now(), reason = $2, provider_id = $3, channel = $4,
        counted_at = case when $1 = 'sent' then now() end
      where ${LEASED}`;
    const values = [state, reason, providerId, message.channel];
    await this.change(message, 'finish', text, values);
  }
}
