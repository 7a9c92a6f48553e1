import { Injectable } from '@nestjs/common';
import pg, { Pool } from 'pg';
import { inTransaction } from '#platform/database/connection.js';
import { takeStep, type Step } from '#platform/event-store/port/subscription-position.js';
import type { StoredEvent } from '#platform/event-store/port/event-store.js';
import { SAME_REQUEST_MS } from '#loyalty/customers/card-links.js';
import {
  MESSAGE_REQUEST_TTL_MS,
  findMessageRequests,
  type IssuedCard,
  type MessageRequest,
} from './card-message.js';
import { GIVE_UP_SECONDS } from './mail.js';

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
  name: 'card_links_name_cards',
  text: `update outgoing_messages m set customer_card_id = i.card_id, due_at = now()
         from unnest($1::bigint[], $2::bigint[]) as i (customer_id, card_id)
         where m.kind = 'card_link' and m.customer_id = i.customer_id and m.customer_card_id is null`,
};

/**
 * Enqueues message requests, except those from before the store came from another instance, and those that repeat
 * another. The channel is a guess, so that neither kind of message waits for the other's server.
 */
const ENQUEUE = {
  name: 'card_links_enqueue',
  text: `insert into outgoing_messages (kind, uuid, account_id, customer_id, customer_card_id, created_at, give_up_at,
           channel, due_at, held_channels, phone_missing)
         select 'card_link', w.id, w.account_id, w.customer_id, w.card_id, w.at,
           now() + interval '${GIVE_UP_SECONDS} seconds',
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
             select from outgoing_messages m
             where m.kind = 'card_link' and m.customer_card_id = w.card_id and m.created_at <= w.at
               and m.created_at > w.at - $7 * interval '1 millisecond')
         on conflict (uuid) do nothing`,
};

/**
 * Enqueues the card links that events ask for. A message has ids only: recipient and text are looked up when it is sent,
 * so that an erased person is gone from here as well.
 */
@Injectable()
export class CardLinkRequests {
  constructor(private readonly pool: Pool) {}

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
      values: [issued.map((card) => card.customerId), issued.map((card) => card.customerCardId)],
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
}
