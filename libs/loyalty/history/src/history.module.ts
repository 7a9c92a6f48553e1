import { Module } from '@nestjs/common';
import { CustomerCardReadsModule } from '#stamping/customer-card-reads.module.js';
import { ActorNames } from './actor-names.service.js';
import { ExplanationService } from './explanation.service.js';
import { HistoryController } from './history.controller.js';
import { HistoryService } from './history.service.js';
import { HistoryTable } from './history-table.service.js';

/** Shows what happened. */
@Module({
  imports: [CustomerCardReadsModule],
  controllers: [HistoryController],
  providers: [ActorNames, ExplanationService, HistoryService, HistoryTable],
})
export class HistoryModule {}
