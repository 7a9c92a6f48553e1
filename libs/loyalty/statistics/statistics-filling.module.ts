import { Module } from '@nestjs/common';
import { RecountGauge } from './recount-gauge.service.js';
import { StatisticsTable } from './statistics-table.service.js';
import { StatisticsSubscription } from './statistics.subscription.js';

/** The part of the statistics that runs in the dispatcher. */
@Module({
  providers: [RecountGauge, StatisticsTable, StatisticsSubscription],
  exports: [StatisticsSubscription],
})
export class StatisticsFillingModule {}
