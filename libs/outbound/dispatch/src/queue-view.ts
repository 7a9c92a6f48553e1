import type { DisabledReason } from '#subscriptions/webhook-subscription.js';

const LEASE_SECONDS = 30;

/** SQL: the end of a lease that begins now. */
export const LEASE_END = `now() + interval '${LEASE_SECONDS} seconds'`;

/** SQL over `l`, a queue, and `s`, its subscription if there is one: the columns of a `ViewRow`. */
export const VIEW_COLUMNS = `l.subscription_id, l.enqueued, s.target_url, s.secret,
      case when s.previous_secret_until > now() then s.previous_secret end as previous_secret,
      s.enabled, s.disabled_reason, s.give_up_before, s.failing_since,
      exists (select from webhook_redeliveries r where r.subscription_id = l.subscription_id) as has_redelivery`;

export type ViewRow = {
  subscription_id: number;
  enqueued: number;
  has_redelivery: boolean;
  target_url: string | null;
  secret: Buffer;
  previous_secret: Buffer | null;
  enabled: boolean;
  disabled_reason: DisabledReason | null;
  give_up_before: Date | null;
  failing_since: Date | null;
};
