import { Global, Module } from '@nestjs/common';
import { AccountTimeZones } from '#platform/http/input.js';
import { StoreProfiles } from '#identity/store-profiles.service.js';
import { accountHandlers } from './account.commands.js';
import { AccountsController } from './accounts.controller.js';
import { AccountsService } from './accounts.service.js';
import { AllAccounts } from './all-accounts.service.js';
import { Quotas } from './quotas.service.js';

/** Global, because identity asks for the profiles of stores. */
@Global()
@Module({
  controllers: [AccountsController],
  providers: [
    AccountsService,
    AllAccounts,
    Quotas,
    { provide: AccountTimeZones, useExisting: AccountsService },
    { provide: StoreProfiles, useExisting: AccountsService },
    ...accountHandlers,
  ],
  exports: [AccountsService, AllAccounts, AccountTimeZones, Quotas, StoreProfiles],
})
export class AccountsModule {}
