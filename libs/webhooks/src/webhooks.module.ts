import { Module } from '@nestjs/common';
import { CqrsModule } from '@nestjs/cqrs';
import { NameLookup } from './name-lookup.client.js';
import { webhookSubscriptionHandlers } from './webhook-subscription.commands.js';
import { WebhookSubscriptionsController } from './webhook-subscriptions.controller.js';
import { WebhookSubscriptionsService } from './webhook-subscriptions.service.js';

/** The api's part of webhooks; what sends them is `webhook-dispatch.module.ts`. */
@Module({
  imports: [CqrsModule],
  controllers: [WebhookSubscriptionsController],
  providers: [WebhookSubscriptionsService, NameLookup, ...webhookSubscriptionHandlers],
})
export class WebhooksModule {}
