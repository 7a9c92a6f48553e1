import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { CustomerCardReadsModule } from '#loyalty/stamping/customer-card-reads.module.js';
import { draftImportHandlers } from './draft-import.commands.js';
import { ImportChanges, importHandlers } from './import.commands.js';
import { ImportRecord } from './import.entity.js';
import { ImportLimits } from './import-limits.service.js';
import { ImportRows } from './import-rows.service.js';
import { ImportsController } from './imports.controller.js';
import { ImportsService } from './imports.service.js';

@Module({
  imports: [TypeOrmModule.forFeature([ImportRecord]), CustomerCardReadsModule],
  controllers: [ImportsController],
  providers: [
    ImportsService,
    ImportRows,
    ImportLimits,
    ImportChanges,
    ...importHandlers,
    ...draftImportHandlers,
  ],
  exports: [ImportsService],
})
export class ImportsModule {}
