import { Module } from '@nestjs/common';
import { CustomerCardsService } from '#stamping/customer-cards.service.js';
import { TemplatesService } from '#stamping/templates.service.js';
import { DeliveryPlans } from './delivery-plans.service.js';
import { EventBodies } from './event-bodies.service.js';
import { EventFeed } from './event-feed.service.js';
import { PublicEventsService } from './public-events.service.js';
import { StreamFolds } from './stream-folds.service.js';
import { WorkHints } from './work-hints.service.js';

/** What both processes know of events and deliveries: how to show the ones and ask for the others. */
@Module({
  providers: [
    CustomerCardsService,
    DeliveryPlans,
    EventBodies,
    EventFeed,
    PublicEventsService,
    StreamFolds,
    TemplatesService,
    WorkHints,
  ],
  exports: [DeliveryPlans, EventBodies, EventFeed, WorkHints],
})
export class WebhookPlansModule {}
