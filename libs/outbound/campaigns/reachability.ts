import { renderSurvivorId } from '#loyalty/stamping/same-person.js';
import { renderCardsOfHolder } from '#outbound/passes/pass-holders.js';
import type { HolderChannel, Reachability } from '#outbound/messages/message-channel.js';

/** SQL about customers `c`: what decides by which channels they can be reached, see `Reachability`. */

export type ReachabilityRow = {
  has_card: boolean;
  has_pass: boolean;
  has_browser: boolean;
  has_email: boolean;
  has_phone: boolean;
  marketing_consent: boolean;
  sms_consent: boolean;
  has_stopped: boolean;
};

/** The conditions of a pass that is on a phone, and of a card that was merged into none. */
const IS_INSTALLED = `i.platform in ('apple', 'google') and i.installed_at is not null and i.removed_at is null`;
const OWN_CARDS = 'customer_cards k where k.merged_into is null';

const SOURCES = {
  has_card: OWN_CARDS,
  has_pass: `pass_installations i join customer_cards k on k.id = i.customer_card_id
    where k.merged_into is null and ${IS_INSTALLED}`,
  has_browser: `web_push_subscriptions w join customer_cards k on k.id = w.customer_card_id
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
 * Renders the columns of a `ReachabilityRow`.
 * @param scope few: each customer is looked up; account: all of the store $1, whose cards are read once
 */
export function renderReachability(scope: 'few' | 'account'): string {
  const columns = Object.entries(SOURCES).map(([name, source]) =>
    scope === 'few'
      ? `exists (select from ${source} and k.customer_id = c.id) as ${name}`
      : `c.id in (select k.customer_id from ${source} and k.account_id = $1) as ${name}`,
  );
  return `${columns.join(', ')}, ${HAS_STOPPED[scope]} as has_stopped,
    c.has_email, c.has_phone, c.marketing_consent, c.sms_consent`;
}

/** The columns by which people are grouped whom the same decides about. */
export const REACHABILITY_COLUMNS =
  'has_card, has_pass, has_browser, has_stopped, has_email, has_phone, marketing_consent, sms_consent';

export function toReachability(row: ReachabilityRow): Reachability {
  return {
    hasCard: row.has_card,
    hasPass: row.has_pass,
    hasBrowser: row.has_browser,
    hasEmail: row.has_email,
    hasPhone: row.has_phone,
    marketingConsent: row.marketing_consent,
    smsConsent: row.sms_consent,
    hasStopped: row.has_stopped,
  };
}

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
