import { renderSurvivorId } from '#loyalty/stamping/same-person.js';
import { renderCardsOfHolder } from '#outbound/passes/pass-holders.js';
import type { HolderChannel } from '#outbound/messages/message-channel.js';

/** SQL about customers `c`: what decides by which channels they can be reached, see `Reachability`. */

/** The conditions of a pass that is on a phone, and of a card that was merged into none. */
const IS_INSTALLED = `i.platform in ('apple', 'google') and i.installed_at is not null and i.removed_at is null`;
const OWN_CARDS = 'customer_cards k where k.merged_into is null';

const SOURCES = {
  hasCard: OWN_CARDS,
  hasPass: `pass_installations i join customer_cards k on k.id = i.customer_card_id
    where k.merged_into is null and ${IS_INSTALLED}`,
  hasBrowser: `web_push_subscriptions w join customer_cards k on k.id = w.customer_card_id
    where k.merged_into is null`,
} as const;

/** Whether messages were stopped on any card of the customer, see `renderCardsOfHolder`. */
const HAS_STOPPED = {
  few: `exists (
      select from message_stops s where s.customer_card_id in (${renderCardsOfHolder('c.id')}))`,
  account: `c.id in (
      select k.customer_id from message_stops s join customer_cards k on k.id = s.customer_card_id
      where s.account_id = $1
      union all
      select ${renderSurvivorId('d.customer_id')} from message_stops s join decoy_cards d on d.id = s.customer_card_id
      where s.account_id = $1 and d.confirmed_at is not null)`,
} as const;

/**
 * Renders the columns of a `Reachability`.
 * @param scope few: each customer is looked up, which `offset 0` keeps so without statistics; account: all of the store $1, whose cards are read once
 */
export function renderReachability(scope: 'few' | 'account'): string {
  const columns = Object.entries(SOURCES).map(([name, source]) =>
    scope === 'few'
      ? `exists (select from ${source} and k.customer_id = c.id offset 0) as "${name}"`
      : `c.id in (select k.customer_id from ${source} and k.account_id = $1) as "${name}"`,
  );
  return `${columns.join(', ')}, ${HAS_STOPPED[scope]} as "hasStopped",
    c.has_email as "hasEmail", c.has_bounced as "hasBounced", c.has_phone as "hasPhone", c.marketing_consent as "marketingConsent",
    c.sms_consent as "smsConsent", c.is_email_unconfirmed as "isEmailUnconfirmed",
    c.is_phone_unconfirmed as "isPhoneUnconfirmed"`;
}

/** Renders the column `phone`: the numbers that decide whether an SMS reaches them. @param isNeeded whether SMS is a channel */
export function renderSmsPhone(isNeeded: boolean): string {
  return isNeeded
    ? `case when c.sms_consent then c.state ->> 'phone' end as phone`
    : 'null as phone';
}

/** The columns by which people are grouped whom the same decides about. */
export const REACHABILITY_COLUMNS =
  '"hasCard", "hasPass", "hasBrowser", "hasStopped", "hasEmail", "hasBounced", "hasPhone", "marketingConsent", "smsConsent", "isEmailUnconfirmed", "isPhoneUnconfirmed", phone';

/** Renders the condition that a card `k` is one that the channel can use. */
export function renderSuits(channel: HolderChannel): string {
  switch (channel) {
    case 'wallet':
      return `exists (select from pass_installations i where i.customer_card_id = k.id and ${IS_INSTALLED})`;
    case 'web_push':
      return 'exists (select from web_push_subscriptions w where w.customer_card_id = k.id)';
    case 'email':
    case 'sms':
      return 'true';
  }
}
