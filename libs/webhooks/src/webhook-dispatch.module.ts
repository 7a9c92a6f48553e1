import { Module } from '@nestjs/common';
import { CustomerCardsService } from '#stamping/customer-cards.service.js';
import { TemplatesService } from '#stamping/templates.service.js';
import { DeliveryQueue } from './delivery-queue.service.js';
import { DeliveryWorker } from './delivery-worker.service.js';
import { FanOut } from './fan-out.subscription.js';
import { NameLookup } from './name-lookup.client.js';
import { PublicEventsService } from './public-events.service.js';
import { StreamFolds } from './stream-folds.service.js';
import { WebhookClient } from './webhook.client.js';
import { WebhookDispatch } from './webhook-dispatch.service.js';

/** The dispatcher's part of webhooks; the API of subscriptions is `webhooks.module.ts`. */
@Module({
  providers: [
    CustomerCardsService,
    DeliveryQueue,
    DeliveryWorker,
    FanOut,
    NameLookup,
    PublicEventsService,
    StreamFolds,
    TemplatesService,
    WebhookClient,
    WebhookDispatch,
  ],
  exports: [WebhookDispatch],
})
export class WebhookDispatchModule {}
