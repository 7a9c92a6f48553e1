import { Module } from '@nestjs/common';
import { SignInModule } from '#web/sign-in/sign-in.module.js';
import { AdminApiTokensController } from './admin-api-tokens.controller.js';
import { AdminCommands } from './admin-commands.service.js';
import { AdminGuard } from './admin-guard.service.js';
import { AdminMembersController } from './admin-members.controller.js';
import { AdminStoresController } from './admin-stores.controller.js';
import { AdminStores } from './admin-stores.service.js';
import { AdminTokensModule } from './admin-tokens.module.js';
import { AdminUsersController } from './admin-users.controller.js';
import { AdminUsers } from './admin-users.service.js';

/** Provisions stores, users and API tokens over HTTP, with tokens of its own (docs/admin-api.md). */
@Module({
  imports: [AdminTokensModule, SignInModule],
  controllers: [
    AdminStoresController,
    AdminMembersController,
    AdminUsersController,
    AdminApiTokensController,
  ],
  providers: [AdminCommands, AdminGuard, AdminStores, AdminUsers],
})
export class AdminApiModule {}
