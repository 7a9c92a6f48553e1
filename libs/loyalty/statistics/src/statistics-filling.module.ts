import { Module } from '@nestjs/common';
import { StatisticsTable } from './statistics-table.service.js';
import { StatisticsSubscription } from './statistics.subscription.js';

/** The part of the statistics that runs in the dispatcher. */
@Module({
  providers: [StatisticsTable, StatisticsSubscription],
  exports: [StatisticsSubscription],
})
export class StatisticsFillingModule {}
