import { Module } from '@nestjs/common';
import { RecordBounceHandler } from '#loyalty/customers/email-bounces.commands.js';
import { CardImagesModule } from '#outbound/card-images/card-images.module.js';
import { BounceMailbox } from './bounce-mailbox.service.js';
import { CardMessagePictures } from './card-message-pictures.service.js';
import { CardLinks } from './card-links.service.js';
import { CardLinkFollower } from './card-links.subscription.js';
import { EmailBounces } from './email-bounces.service.js';
import { MessageDispatch } from './message-dispatch.service.js';
import { MessageLimits } from './message-limits.service.js';
import { MessageMetrics } from './message-metrics.service.js';
import { MessageSending } from './message-sending.service.js';
import { MessagesModule } from './messages.module.js';
import { RetirementAnnouncements } from './retirement-announcements.service.js';
import { SmsClient } from './sms.client.js';
import { SmtpClient } from './smtp.client.js';

/** Sends messages, in the dispatcher. */
@Module({
  imports: [MessagesModule, CardImagesModule],
  providers: [
    BounceMailbox,
    CardLinkFollower,
    CardLinks,
    CardMessagePictures,
    EmailBounces,
    MessageDispatch,
    MessageLimits,
    MessageMetrics,
    MessageSending,
    RecordBounceHandler,
    RetirementAnnouncements,
    SmsClient,
    SmtpClient,
  ],
  exports: [
    BounceMailbox,
    CardLinkFollower,
    CardMessagePictures,
    MessageDispatch,
    RetirementAnnouncements,
    SmtpClient,
  ],
})
export class MessageDispatchModule {}
