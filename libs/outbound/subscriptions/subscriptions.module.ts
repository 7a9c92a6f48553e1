import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { PublicEventsModule } from '#outbound/public-events/public-events.module.js';
import { EventsController } from '#outbound/public-events/events.controller.js';
import { SendingModule } from '#outbound/sending/sending.module.js';
import { DeliveryRequestsModule } from './delivery-requests.module.js';
import { WebhookDeliveriesController } from './webhook-deliveries.controller.js';
import { WebhookDeliveriesService } from './webhook-deliveries.service.js';
import { WebhookSubscriptionTable } from './webhook-subscription-table.service.js';
import { WebhookSubscriptionRow } from './webhook-subscription.entity.js';
import { webhookSubscriptionHandlers } from './webhook-subscription.commands.js';
import { WebhookSubscriptionsController } from './webhook-subscriptions.controller.js';
import { WebhookSubscriptionsService } from './webhook-subscriptions.service.js';

@Module({
  imports: [
    TypeOrmModule.forFeature([WebhookSubscriptionRow]),
    DeliveryRequestsModule,
    PublicEventsModule,
    SendingModule,
  ],
  controllers: [WebhookSubscriptionsController, WebhookDeliveriesController, EventsController],
  providers: [
    WebhookSubscriptionsService,
    WebhookDeliveriesService,
    WebhookSubscriptionTable,
    ...webhookSubscriptionHandlers,
  ],
  exports: [WebhookDeliveriesService, WebhookSubscriptionsService],
})
export class SubscriptionsModule {}
