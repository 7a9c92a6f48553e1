import { Module } from '@nestjs/common';
import { MessagesModule } from '#outbound/messages/messages.module.js';
import { AccountController } from './account.controller.js';
import { AddressController } from './address.controller.js';
import { Addresses } from './addresses.service.js';
import { IdentityProvider } from './company.client.js';
import { CompanyController } from './company.controller.js';
import { FirstPasswordController } from './first-password.controller.js';
import { SessionCookies } from './session-cookies.service.js';
import { HomeController } from './home.controller.js';
import { PasswordResetsController } from './password-resets.controller.js';
import { PasswordResets } from './password-resets.service.js';
import { Reauthentication } from './reauthentication.service.js';
import { SecondFactorController } from './second-factor.controller.js';
import { SignInController } from './sign-in.controller.js';
import { StartPaths } from './start-paths.service.js';
import { Stores } from './stores.service.js';

/** Signs people in to the console, and lets them change their own account. */
@Module({
  imports: [MessagesModule],
  controllers: [
    SignInController,
    CompanyController,
    PasswordResetsController,
    HomeController,
    AccountController,
    AddressController,
    FirstPasswordController,
    SecondFactorController,
  ],
  providers: [
    Addresses,
    IdentityProvider,
    SessionCookies,
    PasswordResets,
    Reauthentication,
    StartPaths,
    Stores,
  ],
  exports: [PasswordResets, Reauthentication, SessionCookies, Stores],
})
export class SignInModule {}
