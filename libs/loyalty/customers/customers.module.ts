import { Module } from '@nestjs/common';
import { StampingModule } from '#loyalty/stamping/stamping.module.js';
import { RequestCardLinksHandler } from './card-links.commands.js';
import { ConfirmConsentHandler } from './consents.commands.js';
import { CustomerQuota } from './customer-quota.service.js';
import { customerHandlers } from './customer.commands.js';
import { EraseCustomerHandler } from './erasing.commands.js';
import { RetryEmailHandler } from './email-bounces.commands.js';
import { CustomerExportController } from './customer-export.controller.js';
import { CustomerExport } from './customer-export.service.js';
import { FindOrCreateCustomerHandler } from './find-or-create.commands.js';
import { CustomersController } from './customers.controller.js';
import { MergePreviews } from './merge-preview.service.js';
import { MergingController } from './merging.controller.js';
import { mergingHandlers } from './merging.commands.js';
import { CustomersService } from './customers.service.js';
import { PhoneConflicts } from './phone-conflicts.service.js';
import { StoreRegions } from './store-regions.service.js';

@Module({
  imports: [StampingModule],
  controllers: [CustomersController, CustomerExportController, MergingController],
  providers: [
    CustomersService,
    CustomerQuota,
    StoreRegions,
    PhoneConflicts,
    CustomerExport,
    MergePreviews,
    ...customerHandlers,
    ...mergingHandlers,
    EraseCustomerHandler,
    FindOrCreateCustomerHandler,
    RequestCardLinksHandler,
    ConfirmConsentHandler,
    RetryEmailHandler,
  ],
  exports: [CustomerExport, CustomerQuota, CustomersService, MergePreviews],
})
export class CustomersModule {}
