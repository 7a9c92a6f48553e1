import { Module } from '@nestjs/common';
import { Pulse } from '#kernel/pulse.js';
import { MessagesModule } from '#messages/messages.module.js';
import { DeliveryMetrics } from './delivery-metrics.service.js';
import { DeliveryQueue } from './delivery-queue.service.js';
import { DeliveryWorker } from './delivery-worker.service.js';
import { DispatchGauges } from './dispatch-gauges.service.js';
import { FailingNotices } from './failing-notices.service.js';
import { FanOut } from './fan-out.subscription.js';
import { NameLookup } from './name-lookup.client.js';
import { Upkeep } from './upkeep.service.js';
import { WebhookClient } from './webhook.client.js';
import { WebhookDispatch } from './webhook-dispatch.service.js';
import { WebhookPlansModule } from './webhook-plans.module.js';

/** The dispatcher's part of webhooks; the API of subscriptions is `webhooks.module.ts`. */
@Module({
  imports: [MessagesModule, WebhookPlansModule],
  providers: [
    DeliveryMetrics,
    DeliveryQueue,
    DeliveryWorker,
    DispatchGauges,
    FailingNotices,
    FanOut,
    NameLookup,
    { provide: Pulse, useFactory: () => new Pulse() },
    Upkeep,
    WebhookClient,
    WebhookDispatch,
  ],
  exports: [WebhookDispatch],
})
export class WebhookDispatchModule {}
