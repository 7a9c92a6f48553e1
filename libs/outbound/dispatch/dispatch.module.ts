import { Module } from '@nestjs/common';
import { StallDetector } from '#platform/kernel/stall-detector.js';
import { MessagesModule } from '#outbound/messages/messages.module.js';
import { PublicEventsModule } from '#outbound/public-events/public-events.module.js';
import { SendingModule } from '#outbound/sending/sending.module.js';
import { DeliveryRequestsModule } from '#outbound/subscriptions/delivery-requests.module.js';
import { DeliveryMetrics } from './delivery-metrics.service.js';
import { AttemptResults } from './attempt-results.service.js';
import { QueueLeases } from './queue-leases.service.js';
import { DeliveryQueues } from './delivery-queues.service.js';
import { QueueLoader } from './queue-loader.service.js';
import { DeliveryAttempts } from './delivery-attempts.service.js';
import { DeliveryWorker } from './delivery-worker.service.js';
import { DispatchGauges } from './dispatch-gauges.service.js';
import { FailureMails } from './failure-mails.service.js';
import { FanOut } from './fan-out.subscription.js';
import { DispatcherMaintenance } from './dispatcher-maintenance.service.js';
import { Replays } from './replays.service.js';
import { WebhookDispatch } from './webhook-dispatch.service.js';

/** The part of webhooks that runs in the dispatcher. */
@Module({
  imports: [DeliveryRequestsModule, MessagesModule, PublicEventsModule, SendingModule],
  providers: [
    DeliveryMetrics,
    AttemptResults,
    QueueLoader,
    QueueLeases,
    DeliveryQueues,
    DeliveryAttempts,
    DeliveryWorker,
    DispatchGauges,
    FailureMails,
    FanOut,
    { provide: StallDetector, useFactory: () => new StallDetector() },
    DispatcherMaintenance,
    Replays,
    WebhookDispatch,
  ],
  exports: [WebhookDispatch],
})
export class DispatchModule {}
