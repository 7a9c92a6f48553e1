import { Module } from '@nestjs/common';
import { CqrsModule } from '@nestjs/cqrs';
import { accountHandlers } from './account.commands.js';
import { AccountsController } from './accounts.controller.js';
import { AccountsService } from './accounts.service.js';

@Module({
  imports: [CqrsModule],
  controllers: [AccountsController],
  providers: [AccountsService, ...accountHandlers],
})
export class AccountsModule {}
