import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { Config } from '#configuration/config.js';
import { inTransaction } from '#platform/database/connection.js';
import { takeStep, type Step } from '#platform/event-store/port/subscription-position.js';
import type { StoredEvent } from '#platform/event-store/port/event-store.js';
import { SAME_REQUEST_MS } from '#loyalty/customers/card-links.js';
import { MESSAGE_REQUEST_TTL_MS, findMessageRequests } from './card-message.js';
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
  text: `update outgoing_messages m set customer_card_id = i."customerCardId", due_at = now()
         from jsonb_to_recordset($1) as i ("customerId" bigint, "customerCardId" bigint)
         where m.kind = 'card_link' and m.customer_id = i."customerId" and m.customer_card_id is null`,
};

/**
 * Enqueues message requests, except those from before the store came from another instance, and those that repeat
 * another of their channel. The channel is a guess, so that neither kind of message waits for the other's server. Where an
 * e-mail goes and a consent to SMS waits for a link, an SMS goes as well: the link of each confirms what went there. A signup
 * without an e-mail address mails nobody: whoever has the address on file would learn that the number belongs to it.
 */
const ENQUEUE = {
  name: 'card_links_enqueue',
  text: `insert into outgoing_messages (kind, uuid, account_id, customer_id, customer_card_id, created_at, give_up_at,
           channel, refused_channels, due_at, held_channels, phone_missing)
         select 'card_link', x.uuid, w."accountId", w."customerId", w."customerCardId", w.at,
           now() + interval '${GIVE_UP_SECONDS} seconds',
           x.channel, x.refused,
           case when w."customerCardId" is null then null else now() end,
           coalesce(h.channels, '{}'), coalesce(h.phone_missing, false)
         from jsonb_to_recordset($1) as w (id uuid, "accountId" bigint, "customerId" bigint, "customerCardId" bigint,
           at timestamptz, "causationId" text, "asksForSms" boolean)
         left join customers c on c.id = w."customerId"
         left join signup_holds h on h.account_id = w."accountId" and h.causation_id = w."causationId"
         cross join lateral (
           select w.id as uuid, case when not c.has_email or h.email_missing then 'sms' else 'email' end as channel,
             case when c.has_email and h.email_missing then '{email}'::text[] else '{}' end as refused
           union all
           select md5(w.id::text || ' sms')::uuid, 'sms', '{email}'::text[]
           where $4 and coalesce(c.is_phone_unconfirmed, w."asksForSms") and coalesce(c.has_email and not c.has_bounced, true)
             and not coalesce(h.email_missing, false)
         ) x
         where w.at > now() - $2 * interval '1 millisecond'
           and not exists (select from card_message_cutoffs s where s.account_id = w."accountId" and s.since > w.at)
           and not exists (
             select from outgoing_messages m
             where m.kind = 'card_link' and m.customer_card_id = w."customerCardId" and m.channel = x.channel
               and m.created_at <= w.at and m.created_at > w.at - $3 * interval '1 millisecond')
         on conflict (uuid) do nothing`,
};

/**
 * Enqueues the card links that events ask for. A message has ids only: recipient and text are looked up when it is sent,
 * so that an erased person is gone from here as well.
 */
@Injectable()
export class CardLinkRequests {
  constructor(
    private readonly pool: Pool,
    private readonly config: Config,
  ) {}

  /** Enqueues the requests of events of the log, and takes the step. @throws OvertakenError */
  async advance(step: Step, events: StoredEvent[]): Promise<void> {
    const { requests, issued } = findMessageRequests(events);
    if (requests.length + issued.length === 0) return takeStep(this.pool, step);
    await inTransaction(this.pool, async (client) => {
      await takeStep(client, step);
      const [cards, messages] = [JSON.stringify(issued), JSON.stringify(requests)];
      if (issued.length > 0) await client.query({ ...NAME_CARDS, values: [cards] });
      if (requests.length === 0) return;
      const hasMail = this.config.mail !== null;
      const values = [messages, MESSAGE_REQUEST_TTL_MS, SAME_REQUEST_MS, hasMail];
      await client.query({ ...ENQUEUE, values });
    });
  }
}
