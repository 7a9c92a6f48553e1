import { Module } from '@nestjs/common';
import { PassesModule } from '#outbound/passes/passes.module.js';
import { SendingModule } from '#outbound/sending/sending.module.js';
import { VapidKeys } from './vapid-keys.service.js';
import { WebPushClient } from './web-push.client.js';
import { WebPushSubscriptions } from './web-push-subscriptions.service.js';
import { WebPushes } from './web-pushes.service.js';

/** Stores the subscriptions. */
@Module({
  imports: [PassesModule],
  providers: [VapidKeys, WebPushSubscriptions],
  exports: [VapidKeys, WebPushSubscriptions],
})
export class WebPushModule {}

/** Sends the notifications, in the dispatcher. */
@Module({
  imports: [PassesModule, SendingModule, WebPushModule],
  providers: [WebPushClient, WebPushes],
  exports: [WebPushes],
})
export class WebPushSendingModule {}
