import { Module } from '@nestjs/common';
import { AccountsModule } from '#accounts/accounts.module.js';
import { AuditModule } from '#history/audit.module.js';
import { MessagesModule } from '#messages/messages.module.js';
import { SignInModule } from '#sign-in/sign-in.module.js';
import { AuditPageController } from './audit-page.controller.js';
import { InvitationController } from './invitation.controller.js';
import { NewStoreController } from './new-store.controller.js';
import { SecondFactorRuleController } from './second-factor-rule.controller.js';
import { StoreSettingsController } from './store-settings.controller.js';
import { StoreTokensController } from './store-tokens.controller.js';
import { StoreUsersController } from './store-users.controller.js';

/** Serves the pages of a store's users, API tokens, settings and audit log. */
@Module({
  imports: [AccountsModule, AuditModule, MessagesModule, SignInModule],
  controllers: [
    SecondFactorRuleController,
    StoreUsersController,
    StoreTokensController,
    StoreSettingsController,
    AuditPageController,
    InvitationController,
    NewStoreController,
  ],
})
export class ConsoleModule {}
