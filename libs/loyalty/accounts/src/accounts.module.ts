import { Module } from '@nestjs/common';
import { StoreTimeZones } from '#http/date-input.js';
import { accountHandlers } from './account.commands.js';
import { AccountsController } from './accounts.controller.js';
import { AccountsService } from './accounts.service.js';

@Module({
  controllers: [AccountsController],
  providers: [
    AccountsService,
    { provide: StoreTimeZones, useExisting: AccountsService },
    ...accountHandlers,
  ],
  exports: [AccountsService, StoreTimeZones],
})
export class AccountsModule {}
