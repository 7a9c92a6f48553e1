import type { DomainEvent } from '#kernel/aggregate.js';
import type { PlainTable, ReadModel } from '#event-store/read-models/read-models.js';
import { accountReadModel } from '#accounts/account.entity.js';
import { cardReadModel } from '#cards/card.entity.js';
import { announcementTable } from '#announcements/announcements.service.js';
import { messageRuleTable } from '#announcements/message-rules.service.js';
import { customerReadModel } from '#customers/customer.entity.js';
import { importTable } from '#imports/import.entity.js';
import { locationReadModel } from '#locations/location.entity.js';
import { posterReadModel } from '#posters/poster.entity.js';
import { rewardReadModel } from '#rewards/reward.entity.js';
import { customerCardReadModel } from '#stamping/customer-card.entity.js';
import { webhookSubscriptionTable } from '#subscriptions/webhook-subscription.entity.js';

/** Lists the read models of all contexts. */
export const readModels = [
  accountReadModel,
  cardReadModel,
  rewardReadModel,
  customerReadModel,
  customerCardReadModel,
  locationReadModel,
  posterReadModel,
].map((readModel) => readModel as unknown as ReadModel<{ accountId: number }, DomainEvent>);

/** Lists the tables that are not made from events and may be older than the events after a restore. */
export const plainTables: PlainTable[] = [
  webhookSubscriptionTable,
  importTable,
  announcementTable,
  messageRuleTable,
];
