import { Module } from '@nestjs/common';
import { StripImagesModule } from '#outbound/card-images/strip-images.module.js';
import { CardMessagePictures } from './card-message-pictures.service.js';
import { CardMessagesFollower } from './card-messages.subscription.js';
import { CardMessageSending } from './card-message-sending.service.js';
import { MailQueue } from './mail-queue.service.js';
import { MessageDispatch } from './message-dispatch.service.js';
import { MessageMetrics } from './message-metrics.service.js';
import { MessageRetention } from './message-retention.service.js';
import { MessagesModule } from './messages.module.js';
import { RetirementNotices } from './retirement-notices.service.js';
import { SmsClient } from './sms.client.js';
import { SmtpClient } from './smtp.client.js';

/** Sends messages, in the dispatcher. */
@Module({
  imports: [MessagesModule, StripImagesModule],
  providers: [
    CardMessagesFollower,
    CardMessagePictures,
    CardMessageSending,
    MailQueue,
    MessageDispatch,
    MessageMetrics,
    MessageRetention,
    RetirementNotices,
    SmsClient,
    SmtpClient,
  ],
  exports: [
    CardMessagePictures,
    CardMessagesFollower,
    MessageDispatch,
    MessageRetention,
    RetirementNotices,
    SmsClient,
    SmtpClient,
  ],
})
export class MessageDispatchModule {}
