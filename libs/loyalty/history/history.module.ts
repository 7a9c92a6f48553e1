import { Module } from '@nestjs/common';
import { CustomerCardReadsModule } from '#loyalty/stamping/customer-card-reads.module.js';
import { AuditController } from './audit.controller.js';
import { AuditModule } from './audit.module.js';
import { ExplanationService } from './explanation.service.js';
import { HistoryController } from './history.controller.js';
import { HistoryService } from './history.service.js';
import { HistoryTable } from './history-table.service.js';
import { ReceiptEntries } from './receipt-entries.service.js';
import { RedemptionsController } from './redemptions.controller.js';
import { RedemptionsService } from './redemptions.service.js';

/** Shows what happened. */
@Module({
  imports: [AuditModule, CustomerCardReadsModule],
  controllers: [HistoryController, RedemptionsController, AuditController],
  providers: [ExplanationService, HistoryService, ReceiptEntries, RedemptionsService, HistoryTable],
  exports: [ExplanationService, HistoryService, RedemptionsService],
})
export class HistoryModule {}
