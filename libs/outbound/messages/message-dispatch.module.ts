import { Module } from '@nestjs/common';
import { RecordBounceHandler } from '#loyalty/customers/email-bounces.commands.js';
import { CardImagesModule } from '#outbound/card-images/card-images.module.js';
import { CardMessagePictures } from './card-message-pictures.service.js';
import { CardMessagesFollower } from './card-messages.subscription.js';
import { CardMessageSending } from './card-message-sending.service.js';
import { EmailBounces } from './email-bounces.service.js';
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
  imports: [MessagesModule, CardImagesModule],
  providers: [
    CardMessagesFollower,
    CardMessagePictures,
    CardMessageSending,
    EmailBounces,
    MailQueue,
    MessageDispatch,
    MessageMetrics,
    MessageRetention,
    RecordBounceHandler,
    RetirementNotices,
    SmsClient,
    SmtpClient,
  ],
  exports: [
    CardMessagePictures,
    CardMessagesFollower,
    EmailBounces,
    MessageDispatch,
    MessageRetention,
    RetirementNotices,
    SmsClient,
    SmtpClient,
  ],
})
export class MessageDispatchModule {}
