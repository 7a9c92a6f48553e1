import { Module } from '@nestjs/common';
import { PublicEventsModule } from '#outbound/public-events/public-events.module.js';
import { DeliveryRequests } from './delivery-requests.service.js';
import { WorkHints } from './work-hints.service.js';

/** Provides what hands work from the api to the dispatchers. */
@Module({
  imports: [PublicEventsModule],
  providers: [DeliveryRequests, WorkHints],
  exports: [DeliveryRequests, WorkHints],
})
export class DeliveryRequestsModule {}
