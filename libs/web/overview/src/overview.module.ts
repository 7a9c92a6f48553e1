import { Module } from '@nestjs/common';
import { AccountsModule } from '#accounts/accounts.module.js';
import { NumbersModule } from '#numbers/numbers.module.js';
import { OverviewController } from './overview.controller.js';
import { StoreSetup } from './store-setup.service.js';

/** Serves the first page of a store in the console. */
@Module({
  imports: [AccountsModule, NumbersModule],
  controllers: [OverviewController],
  providers: [StoreSetup],
})
export class OverviewModule {}
