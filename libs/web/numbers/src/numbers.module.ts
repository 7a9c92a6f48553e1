import { Module } from '@nestjs/common';
import { LocationsModule } from '#locations/locations.module.js';
import { StatisticsModule } from '#statistics/statistics.module.js';
import { NumbersController } from './numbers.controller.js';
import { RecordNames } from './record-names.service.js';
import { TodaysNumbers } from './todays-numbers.service.js';

/** Shows the numbers of a store in the console. */
@Module({
  imports: [LocationsModule, StatisticsModule],
  controllers: [NumbersController],
  providers: [RecordNames, TodaysNumbers],
  exports: [TodaysNumbers],
})
export class NumbersModule {}
