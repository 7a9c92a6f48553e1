import { Module } from '@nestjs/common';
import { CustomerCardReadsModule } from '#loyalty/stamping/customer-card-reads.module.js';
import { PosterFontsModule } from '#loyalty/posters/poster-fonts.module.js';
import { EventBodies } from './event-bodies.service.js';
import { RENDERERS, type EventRenderer } from './event-renderer.js';
import { EventSubjects } from './event-subjects.service.js';
import { EventFeed } from './event-feed.service.js';
import { CustomerCardRenderer } from './customer-card-renderer.service.js';
import { CustomerRenderer } from './customer-renderer.service.js';
import { RecordRenderers } from './record-renderers.service.js';
import { StreamProjections } from './stream-projections.service.js';

/** One for each aggregate whose events are about a customer. */
const customerRenderers = [CustomerRenderer, CustomerCardRenderer];

/** Renders public events for webhooks and the feed. */
@Module({
  imports: [CustomerCardReadsModule, PosterFontsModule],
  providers: [
    EventBodies,
    EventFeed,
    EventSubjects,
    StreamProjections,
    RecordRenderers,
    ...customerRenderers,
    {
      provide: RENDERERS,
      inject: [RecordRenderers, ...customerRenderers],
      useFactory: (records: RecordRenderers, ...others: EventRenderer[]) => [
        ...others,
        ...records.all,
      ],
    },
  ],
  exports: [EventBodies, EventFeed, EventSubjects],
})
export class PublicEventsModule {}
