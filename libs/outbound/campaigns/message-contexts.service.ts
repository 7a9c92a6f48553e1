import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import type { Actor } from '#platform/kernel/aggregate.js';
import { query } from '#platform/database/connection.js';
import type { CustomerLanguage } from '#translations/translations.js';
import type { Account } from '#loyalty/accounts/account.js';
import { listSmsCountries } from '#loyalty/accounts/sms-countries.js';
import type { HolderChannel } from '#outbound/messages/message-channel.js';
import { renderSuits } from './reachability.js';
import { IS_STILL_TRUE } from './rule-occasions.js';

/** What a message is sent with, as it is now. */
export type MessageContext = CustomerLanguage & {
  title: string;
  text: string;
  channels: HolderChannel[];
  announcementId: number | null;
  ruleId: number | null;
  /** Who sent the announcement; null for a rule. */
  actor: Actor | null;
  /** False: what the message is about is over. */
  isStillTrue: boolean;
  /** The card of the occasion, and the template that the message is about, if any. */
  customerCardId: number | null;
  cardId: number | null;
  store: string;
  timeZone: string;
  smsCountries: string[];
};

export type HolderCard = { id: number; uuid: string; email: string | null; phone: string | null };

type ContextRow = Omit<MessageContext, 'addressForm' | 'smsCountries'> & { account: Account };

const FIND = {
  name: 'campaign_messages_context',
  text: `select coalesce(m.title, r.title) as title, coalesce(m.text, r.text) as text, r.channels,
           m.announcement_id as "announcementId", m.rule_id as "ruleId", r.actor,
           coalesce(m.rule_id is null or (${IS_STILL_TRUE}), false) as "isStillTrue",
           m.customer_card_id as "customerCardId",
           coalesce((r.trigger ->> 'cardId')::bigint,
             (select k.card_id from customer_cards k where k.id = m.customer_card_id)) as "cardId",
           s.display_name as store, s.locale, s.time_zone as "timeZone", s.state as account
         from outgoing_messages m
         join accounts s on s.id = m.account_id
         join campaigns r on r.id = coalesce(m.announcement_id, m.rule_id)
           and r.kind = case when m.rule_id is null then 'announcement' else 'rule' end
         where m.id = $1`,
};

/** Finds what messages are sent with. */
@Injectable()
export class MessageContexts {
  constructor(private readonly pool: Pool) {}

  async find(messageId: number): Promise<MessageContext | undefined> {
    const [row] = await query<ContextRow>(this.pool, { ...FIND, values: [messageId] });
    if (!row) return undefined;
    const { account, ...context } = row;
    const { addressForm } = account;
    return { ...context, addressForm, smsCountries: listSmsCountries(account) };
  }

  /** Finds the card of a customer that the channel can use: that of the occasion, else of the template, else the last. */
  async findCard(
    customerId: number,
    channel: HolderChannel,
    { customerCardId, cardId }: Pick<MessageContext, 'customerCardId' | 'cardId'>,
  ): Promise<HolderCard | undefined> {
    const [card] = await query<HolderCard>(this.pool, {
      name: `campaign_messages_card_${channel}`,
      text: `select k.id, k.uuid, n.email, n.phone
             from customer_cards k join customer_names n on n.id = k.customer_id
             where k.customer_id = $1 and k.merged_into is null and ${renderSuits(channel)}
             order by (k.id = $2) is true desc, (k.card_id = $3) is true desc, k.id desc limit 1`,
      values: [customerId, customerCardId, cardId],
    });
    return card;
  }
}
