import { Module } from '@nestjs/common';
import { CardMessageContents } from './card-message-contents.service.js';
import { CardMessages } from './card-messages.service.js';
import { MailOutbox } from './mail-outbox.service.js';
import { Outbox } from './outbox.service.js';
import { SmsCallbackController } from './sms-callback.controller.js';

/** Provides the queues of messages to those who enqueue or show them. */
@Module({
  controllers: [SmsCallbackController],
  providers: [MailOutbox, CardMessages, CardMessageContents, Outbox],
  exports: [MailOutbox, CardMessages, CardMessageContents, Outbox],
})
export class MessagesModule {}
