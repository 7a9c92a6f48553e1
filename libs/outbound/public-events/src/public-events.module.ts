import { Module } from '@nestjs/common';
import { CustomerCardReadsModule } from '#stamping/customer-card-reads.module.js';
import { EventBodies } from './event-bodies.service.js';
import { EventFeed } from './event-feed.service.js';
import { PublicEventsService } from './public-events.service.js';
import { StreamFolds } from './stream-folds.service.js';

/** How public events are shown, in webhooks and in the feed. */
@Module({
  imports: [CustomerCardReadsModule],
  providers: [EventBodies, EventFeed, PublicEventsService, StreamFolds],
  exports: [EventBodies, EventFeed],
})
export class PublicEventsModule {}
