import { Module } from '@nestjs/common';
import { HistoryModule } from '#loyalty/history/history.module.js';
import { CustomerCardReadsModule } from '#loyalty/stamping/customer-card-reads.module.js';
import { ExportPlaces } from './export-places.service.js';
import { ExportedRecords } from './exported-records.service.js';
import { ExportsController } from './exports.controller.js';
import { StoreExport } from './store-export.service.js';

/** Exports a store's records as files. */
@Module({
  imports: [CustomerCardReadsModule, HistoryModule],
  controllers: [ExportsController],
  providers: [ExportPlaces, ExportedRecords, StoreExport],
  exports: [StoreExport],
})
export class ExportsModule {}
