import type { DomainEvent } from '#kernel/aggregate.js';
import type { PlainTable, RowTable } from '#event-store/read-models/read-models.js';
import { accountRows } from '#accounts/account.entity.js';
import { cardRows } from '#cards/card.entity.js';
import { customerRows } from '#customers/customer.entity.js';
import { locationRows } from '#locations/location.entity.js';
import { posterRows } from '#posters/poster.entity.js';
import { rewardRows } from '#rewards/reward.entity.js';
import { customerCardRows } from '#stamping/customer-card.entity.js';
import { webhookSubscriptionTable } from '#subscriptions/webhook-subscription.entity.js';

/** The row tables of every event-sourced context, for what works on all of them. */
export const rowTables = [
  accountRows,
  cardRows,
  rewardRows,
  customerRows,
  customerCardRows,
  locationRows,
  posterRows,
].map((rows) => rows as unknown as RowTable<{ accountId: number }, DomainEvent>);

/** The tables besides them that a restore can leave behind the history. */
export const plainTables: PlainTable[] = [webhookSubscriptionTable];
