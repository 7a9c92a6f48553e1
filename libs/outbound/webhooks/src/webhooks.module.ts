import { Module } from '@nestjs/common';
import { CqrsModule } from '@nestjs/cqrs';
import { EventsController } from './events.controller.js';
import { NameLookup } from './name-lookup.client.js';
import { WebhookClient } from './webhook.client.js';
import { WebhookDeliveriesController } from './webhook-deliveries.controller.js';
import { WebhookDeliveriesService } from './webhook-deliveries.service.js';
import { WebhookPlansModule } from './webhook-plans.module.js';
import { WebhookSubscriptionTable } from './webhook-subscription-table.service.js';
import { webhookSubscriptionHandlers } from './webhook-subscription.commands.js';
import { WebhookSubscriptionsController } from './webhook-subscriptions.controller.js';
import { WebhookSubscriptionsService } from './webhook-subscriptions.service.js';

/** The api's part of webhooks; what sends them is `webhook-dispatch.module.ts`. */
@Module({
  imports: [CqrsModule, WebhookPlansModule],
  controllers: [WebhookSubscriptionsController, WebhookDeliveriesController, EventsController],
  providers: [
    WebhookSubscriptionsService,
    WebhookDeliveriesService,
    WebhookSubscriptionTable,
    WebhookClient,
    NameLookup,
    ...webhookSubscriptionHandlers,
  ],
})
export class WebhooksModule {}
