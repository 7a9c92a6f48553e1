import type { DomainEvent } from '#platform/kernel/aggregate.js';
import type { PlainTable, ReadModel } from '#platform/event-store/read-models/read-models.js';
import { account } from '#loyalty/accounts/account.js';
import { card } from '#loyalty/cards/card.js';
import { campaignTable } from '#outbound/campaigns/campaigns.service.js';
import { customerReadModel } from '#loyalty/customers/customer.entity.js';
import { importTable } from '#loyalty/imports/import.entity.js';
import { location } from '#loyalty/locations/location.js';
import { posterReadModel } from '#loyalty/posters/poster.entity.js';
import { reward } from '#loyalty/rewards/reward.js';
import { customerCardReadModel } from '#loyalty/stamping/customer-card.entity.js';
import { webhookSubscriptionTable } from '#outbound/subscriptions/webhook-subscription.entity.js';

/** Lists the read models of all contexts. */
export const readModels = [
  account,
  card,
  reward,
  customerReadModel,
  customerCardReadModel,
  location,
  posterReadModel,
].map((readModel) => readModel as unknown as ReadModel<{ accountId: number }, DomainEvent>);

/** Lists the tables that are not made from events and may be older than the events after a restore. */
export const plainTables: PlainTable[] = [webhookSubscriptionTable, importTable, campaignTable];
