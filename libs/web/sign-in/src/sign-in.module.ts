import { Module } from '@nestjs/common';
import { AccountController } from './account.controller.js';
import { Doors } from './doors.service.js';
import { HomeController } from './home.controller.js';
import { Reentry } from './reentry.service.js';
import { SignInController } from './sign-in.controller.js';
import { Stores } from './stores.service.js';

/** How people get into the console, and what they see to themselves. */
@Module({
  controllers: [SignInController, HomeController, AccountController],
  providers: [Doors, Reentry, Stores],
})
export class SignInModule {}
