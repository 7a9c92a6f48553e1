import { Module } from '@nestjs/common';
import { PassesModule } from '#outbound/passes/passes.module.js';
import { CallbackKeys } from './callback-keys.client.js';
import { GoogleCallbacks } from './callbacks.service.js';
import { GoogleCallbackController } from './google-callback.controller.js';
import { GoogleClassSender } from './google-class.sender.js';
import { GoogleLinks } from './google-links.service.js';
import { GoogleMessages } from './google-messages.service.js';
import { GoogleObjectMessages } from './google-object-messages.service.js';
import { GoogleObjectSender } from './google-object.sender.js';
import { GoogleObjects } from './google-objects.service.js';
import { GooglePasses } from './google-passes.service.js';
import { GoogleTokens } from './google-tokens.client.js';
import { GoogleWalletClient } from './google-wallet.client.js';

/** Sends passes to Google, in the dispatcher. */
@Module({
  imports: [PassesModule],
  providers: [
    GoogleClassSender,
    GoogleMessages,
    GoogleObjectMessages,
    GoogleObjectSender,
    GoogleObjects,
    GooglePasses,
    GoogleTokens,
    GoogleWalletClient,
  ],
  exports: [GoogleClassSender, GoogleObjectSender, GoogleObjects, GooglePasses],
})
export class GoogleSendingModule {}

/** Serves requests of customers and Google, in the api. */
@Module({
  imports: [GoogleSendingModule, PassesModule],
  controllers: [GoogleCallbackController],
  providers: [CallbackKeys, GoogleCallbacks, GoogleLinks],
  exports: [GoogleLinks],
})
export class GoogleWalletModule {}
