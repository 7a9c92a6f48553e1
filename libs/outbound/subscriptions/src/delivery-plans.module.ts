import { Module } from '@nestjs/common';
import { DeliveryPlans } from './delivery-plans.service.js';
import { WorkHints } from './work-hints.service.js';

/** How the API gives work to the dispatchers. */
@Module({ providers: [DeliveryPlans, WorkHints], exports: [DeliveryPlans, WorkHints] })
export class DeliveryPlansModule {}
