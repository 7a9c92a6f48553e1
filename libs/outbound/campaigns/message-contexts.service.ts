import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import type { Actor } from '#platform/kernel/aggregate.js';
import { query } from '#platform/database/connection.js';
import { KeyedReads } from '#platform/database/keyed-reads.js';
import {
  CHANNELS,
  type HolderChannel,
  type MessageReason,
} from '#outbound/messages/message-channel.js';
import { renderHours } from '#outbound/messages/outgoing-messages.service.js';
import { renderSuits } from './reachability.js';
import { IS_STILL_TRUE } from './rule-occasions.js';

/** What a message is sent with, as it is now. */
export type MessageContext = {
  title: string;
  text: string;
  channels: HolderChannel[];
  announcementId: number | null;
  ruleId: number | null;
  /** Who sent the announcement; null for a rule. */
  actor: Actor | null;
  /** Why it is not to be sent any more: what it is about is over, or it was cancelled, as by turning its rule off. */
  skipReason: Extract<MessageReason, 'past' | 'cancelled'> | null;
  /** The card of the occasion, and the template that the message is about, if any. */
  customerCardId: number | null;
  cardId: number | null;
  /** How many stamps the recipients of an announcement have, if that narrows its audience. */
  minStamps: number | null;
  timeZone: string;
  /** The quiet hours and the time zone, as `OutgoingMessages.wait` compares them. */
  hours: string;
};

const FIND = {
  name: 'campaign_messages_context',
  text: `select m.id, coalesce(m.title, r.title) as title, coalesce(m.text, r.text) as text, r.channels,
           m.announcement_id as "announcementId", m.rule_id as "ruleId", r.actor,
           case when r.state in ('cancelled', 'disabled', 'deleted') then 'cancelled'
             when m.rule_id is null or ${IS_STILL_TRUE} then null else 'past' end as "skipReason",
           m.customer_card_id as "customerCardId",
           coalesce((r.trigger ->> 'cardId')::bigint,
             (select k.card_id from customer_cards k where k.id = m.customer_card_id)) as "cardId",
           (r.trigger ->> 'minStamps')::int as "minStamps", s.time_zone as "timeZone",
           ${renderHours('')} as hours
         from outgoing_messages m
         join accounts s on s.id = m.account_id
         join campaigns r on r.id = coalesce(m.announcement_id, m.rule_id)
           and r.kind = case when m.rule_id is null then 'announcement' else 'rule' end
         where m.id = any (array(select unnest($1::bigint[])))`,
};

type CardKey = { customerId: number } & CardChoice;
/** What decides which card a message shows. */
export type CardChoice = Pick<MessageContext, 'customerCardId' | 'cardId' | 'minStamps'>;

/** Finds what messages are sent with. */
@Injectable()
export class MessageContexts {
  private readonly contexts = new KeyedReads<number, MessageContext>((ids) => this.findAll(ids));
  private readonly cards = new Map(
    CHANNELS.map((channel) => [
      channel,
      new KeyedReads<CardKey, number>((keys) => this.findCards(channel, keys)),
    ]),
  );

  constructor(private readonly pool: Pool) {}

  find(messageId: number): Promise<MessageContext | undefined> {
    return this.contexts.find(messageId);
  }

  /**
   * Finds the card of a customer that the channel can use: that of the occasion, else of the template, else one that has the
   * stamps by which the audience is narrowed, else the fullest. An archived card is shown only to those who have no other.
   */
  async findCard(
    customerId: number,
    channel: HolderChannel,
    { customerCardId, cardId, minStamps }: CardChoice,
  ): Promise<number | undefined> {
    return this.cards.get(channel)?.find({ customerId, customerCardId, cardId, minStamps });
  }

  private async findAll(messageIds: number[]): Promise<Map<number, MessageContext>> {
    const statement = { ...FIND, values: [messageIds] };
    const rows = await query<MessageContext & { id: number }>(this.pool, statement);
    return new Map(rows.map(({ id, ...context }) => [id, context]));
  }

  private async findCards(channel: HolderChannel, keys: CardKey[]): Promise<Map<CardKey, number>> {
    const rows = await query<{ id: number; place: number }>(this.pool, {
      name: `campaign_messages_cards_${channel}`,
      text: `select x.place, k.id
             from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::int[])
               with ordinality x (customer_id, customer_card_id, card_id, min_stamps, place)
             cross join lateral (
               select k.id from customer_cards k join cards t on t.id = k.card_id
               where k.customer_id = x.customer_id and k.merged_into is null and ${renderSuits(channel)}
               order by (k.id = x.customer_card_id) is true desc, (k.card_id = x.card_id) is true desc,
                 (t.state ->> 'archivedAt') is null desc, (k.balance >= x.min_stamps) is true desc,
                 k.balance::float8 / t.stamps_required desc, k.balance desc, k.id desc
               limit 1) k`,
      values: [
        keys.map((key) => key.customerId),
        keys.map((key) => key.customerCardId),
        keys.map((key) => key.cardId),
        keys.map((key) => key.minStamps),
      ],
    });
    const cards = new Map<CardKey, number>();
    for (const { place, id } of rows) {
      const key = keys[place - 1];
      if (key) cards.set(key, id);
    }
    return cards;
  }
}
