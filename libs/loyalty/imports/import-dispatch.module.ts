import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { SetImportedStampsHandler } from '#loyalty/stamping/imported-stamps.commands.js';
import { ReverseCardEventHandler } from '#loyalty/stamping/corrections.commands.js';
import { CorrectionsService } from '#loyalty/stamping/corrections.service.js';
import { EnrolCustomerHandler } from '#loyalty/stamping/customer-card.commands.js';
import { CustomerCardReadsModule } from '#loyalty/stamping/customer-card-reads.module.js';
import { customerHandlers } from '#loyalty/customers/customer.commands.js';
import { EraseCustomerHandler } from '#loyalty/customers/erasing.commands.js';
import { CustomerQuota } from '#loyalty/customers/customer-quota.service.js';
import { StoreRegions } from '#loyalty/customers/store-regions.service.js';
import { CustomerMatches } from './customer-matches.service.js';
import { ImportApplying } from './import-applying.service.js';
import { ImportChecking } from './import-checking.service.js';
import { ImportDispatch } from './import-dispatch.service.js';
import { ImportPreview } from './import-preview.service.js';
import { ImportQueue } from './import-queue.service.js';
import { ImportRetention } from './import-retention.service.js';
import { ImportRows } from './import-rows.service.js';
import { ImportUndoing } from './import-undoing.service.js';
import { ImportRecord } from './import.entity.js';

/** Works on imports, in the dispatcher, with the commands of the API. */
@Module({
  imports: [TypeOrmModule.forFeature([ImportRecord]), CustomerCardReadsModule],
  providers: [
    ImportDispatch,
    ImportQueue,
    ImportChecking,
    ImportPreview,
    ImportApplying,
    ImportUndoing,
    ImportRetention,
    ImportRows,
    CustomerMatches,
    StoreRegions,
    CustomerQuota,
    CorrectionsService,
    ...customerHandlers,
    EnrolCustomerHandler,
    SetImportedStampsHandler,
    ReverseCardEventHandler,
    EraseCustomerHandler,
  ],
  exports: [ImportDispatch],
})
export class ImportDispatchModule {}
