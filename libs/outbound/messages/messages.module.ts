import { Module } from '@nestjs/common';
import { CardMessageContents } from './card-message-contents.service.js';
import { CardLinkRequests } from './card-link-requests.service.js';
import { MailOutbox } from './mail-outbox.service.js';
import { Outbox } from './outbox.service.js';
import { OutgoingMessages } from './outgoing-messages.service.js';
import { SmsCallbackController } from './sms-callback.controller.js';

/** Provides the queues of messages to those who enqueue or show them. */
@Module({
  controllers: [SmsCallbackController],
  providers: [CardLinkRequests, CardMessageContents, MailOutbox, Outbox, OutgoingMessages],
  exports: [CardLinkRequests, CardMessageContents, MailOutbox, Outbox, OutgoingMessages],
})
export class MessagesModule {}
