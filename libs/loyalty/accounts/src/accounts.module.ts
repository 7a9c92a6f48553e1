import { Module } from '@nestjs/common';
import { accountHandlers } from './account.commands.js';
import { AccountsController } from './accounts.controller.js';
import { AccountsService } from './accounts.service.js';

@Module({
  controllers: [AccountsController],
  providers: [AccountsService, ...accountHandlers],
  exports: [AccountsService],
})
export class AccountsModule {}
