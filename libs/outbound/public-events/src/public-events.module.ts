import { Module } from '@nestjs/common';
import { CustomerCardReadsModule } from '#stamping/customer-card-reads.module.js';
import { EventBodies } from './event-bodies.service.js';
import { RENDERERS, type EventRenderer } from './event-renderer.js';
import { EventSubjects } from './event-subjects.service.js';
import { EventFeed } from './event-feed.service.js';
import { CustomerCardRenderer } from './customer-card-renderer.service.js';
import { CustomerRenderer } from './customer-renderer.service.js';
import { StreamProjections } from './stream-projections.service.js';

/** One for each aggregate with public events. */
const renderers = [CustomerRenderer, CustomerCardRenderer];

/** Renders public events for webhooks and the feed. */
@Module({
  imports: [CustomerCardReadsModule],
  providers: [
    EventBodies,
    EventFeed,
    EventSubjects,
    StreamProjections,
    ...renderers,
    { provide: RENDERERS, inject: renderers, useFactory: (...all: EventRenderer[]) => all },
  ],
  exports: [EventBodies, EventFeed, EventSubjects],
})
export class PublicEventsModule {}
