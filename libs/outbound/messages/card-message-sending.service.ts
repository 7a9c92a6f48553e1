import { Injectable, Logger } from '@nestjs/common';
import { Config } from '#configuration/config.js';
import { getNow } from '#platform/kernel/clock.js';
import type { Job, JobOutcome } from '#platform/database/job-queue.js';
import type { JobHandler } from '#platform/database/job-runner.js';
import { CapOverrides } from '#platform/event-store/commands/cap-overrides.service.js';
import { KnownErasures } from '#platform/event-store/personal-keys/known-erasures.js';
import { GIVE_UP_SECONDS, type MailOutcome } from './mail.js';
import { chooseRoute, type MessageChannel, type Route, type UnsentReason } from './card-message.js';
import {
  renderCardMail,
  renderCardSms,
  type CardMessageContent,
  type CardPictures,
} from './card-message-texts.js';
import { CardMessagePictures } from './card-message-pictures.service.js';
import { CardMessageContents, type FoundContent } from './card-message-contents.service.js';
import { CardMessages, type QueuedMessage } from './card-messages.service.js';
import { EmailBounces } from './email-bounces.service.js';
import { findLimits } from './message-limits.service.js';
import { MessageMetrics } from './message-metrics.service.js';
import type { SmsOutcome } from './sms-response.js';
import { SmsClient } from './sms.client.js';
import { SmtpClient } from './smtp.client.js';

type Outcome = MailOutcome | SmsOutcome;

const CONCURRENCY = 4;
/** The delay after a message went out of date before it was sent, because its recipient may have been erased. */
const REWRITE_DELAY_MS = 1_000;

const STORE_LIMIT = { email: 'too_many_emails', sms: 'too_many_sms' } as const;

/** Sends card links to customers. Each message is looked up, addressed and rendered when it is sent. */
@Injectable()
export class CardMessageSending {
  private readonly log = new Logger('card messages');

  constructor(
    private readonly messages: CardMessages,
    private readonly contents: CardMessageContents,
    private readonly pictures: CardMessagePictures,
    private readonly erasures: KnownErasures,
    private readonly bounces: EmailBounces,
    private readonly smtp: SmtpClient,
    private readonly sms: SmsClient,
    private readonly metrics: MessageMetrics,
    private readonly overrides: CapOverrides,
    private readonly config: Config,
  ) {}

  /** Creates one handler for each channel, so that neither waits for the other's server. */
  createHandler(channel: MessageChannel): JobHandler<QueuedMessage> {
    return {
      queue: this.messages,
      concurrency: CONCURRENCY,
      claim: (limit) => this.messages.claim(limit, channel),
      describeFailure: ({ id }) => `message ${id} could not be sent by ${channel}`,
      attempt: (message, cut, isLeased) => this.attempt(message, cut, isLeased),
      getGiveUpAt: ({ enqueuedAt }) => new Date(enqueuedAt.getTime() + GIVE_UP_SECONDS * 1000),
    };
  }

  private async attempt(
    message: Job<QueuedMessage>,
    cut: AbortSignal,
    isLeased: () => boolean,
  ): Promise<JobOutcome | void> {
    const readAt = performance.now();
    const content = await this.contents.find(message.customerCardId);
    if (!content) return this.recordUnsent(message, 'dropped', 'erased');
    const route = this.routeTo(content, message.mailRefused);
    if (route.kind === 'drop') return this.recordUnsent(message, 'dropped', route.reason);
    const { channel } = route;
    if (route.kind === 'hold')
      return this.recordUnsent({ ...message, channel }, 'held', route.reason);
    if (channel !== message.channel) {
      return this.messages.redirect(message, channel, message.mailRefused);
    }
    if (message.heldChannels.includes(channel))
      return this.recordUnsent(message, 'held', 'too_many_signups');
    if (channel === 'sms' && message.phoneMissing)
      return this.recordUnsent(message, 'held', 'phone_not_entered');
    const limits = await findLimits(this.overrides, this.config, message.accountId, channel);
    const reachedLimit = await this.messages.reserve(message, route, limits);
    if (reachedLimit !== null) {
      const reason = reachedLimit === 'store' ? STORE_LIMIT[channel] : 'too_many_to_address';
      return this.recordUnsent(message, 'held', reason);
    }
    const pictures =
      channel === 'email' ? await this.pictures.drawIfPossible(content.pictured) : null;
    const read = { subjectId: content.customerId, readAt };
    const now = () => performance.now();
    const outcome = await this.erasures.send(read, now, ({ erased, mayBeSent }) =>
      this.send({ ...route, id: message.id }, content.content, pictures, {
        cut: AbortSignal.any([cut, erased]),
        mayBeSent: () => mayBeSent() && isLeased(),
      }),
    );
    if (!outcome) {
      await this.messages.releaseReservation(message, route);
      return this.messages.postpone(message, REWRITE_DELAY_MS, 'it is being sent again');
    }
    this.metrics.countAttempt(`card_${channel}`, outcome.kind);
    if (outcome.kind === 'failed') return outcome;
    if (outcome.kind === 'refused') return this.recordRefusal(message, content, route, outcome);
    this.log.debug(`message ${message.id} was sent`);
    const providerId = 'providerId' in outcome ? outcome.providerId : null;
    return this.messages.record(message, 'sent', { providerId });
  }

  /** Sends by SMS what the mail server refuses. What nobody takes has failed. */
  private async recordRefusal(
    message: Job<QueuedMessage>,
    content: FoundContent,
    route: Extract<Route, { kind: 'send' }>,
    outcome: Extract<Outcome, { kind: 'refused' }>,
  ): Promise<void> {
    const { channel, to } = route;
    await this.messages.releaseReservation(message, route);
    if (channel === 'email') {
      await this.bounces.record({
        accountId: message.accountId,
        customerId: content.customerId,
        messageId: message.id,
        address: to,
        status: 'status' in outcome ? outcome.status : undefined,
        sentAt: getNow(),
      });
      const other = this.routeTo(content, true);
      if (other.kind === 'send') return this.messages.redirect(message, other.channel, true);
    }
    this.log.warn(`message ${message.id} could not be sent by ${channel} (${outcome.error})`);
    return this.messages.record(message, 'failed', { reason: outcome.error });
  }

  private recordUnsent(
    message: Job<QueuedMessage>,
    state: 'held' | 'dropped',
    reason: UnsentReason,
  ): Promise<void> {
    return this.messages.record(message, state, { reason });
  }

  private routeTo({ contact, smsCountries }: FoundContent, mailRefused: boolean): Route {
    const setUp = { email: this.config.mail !== null, sms: this.config.sms !== null };
    return chooseRoute(contact, { ...setUp, smsCountries }, mailRefused);
  }

  private send(
    { channel, to, id }: { channel: MessageChannel; to: string; id: string },
    content: CardMessageContent,
    pictures: CardPictures | null,
    { cut, mayBeSent }: { cut: AbortSignal; mayBeSent: () => boolean },
  ): Promise<Outcome> {
    return channel === 'email'
      ? this.smtp.send(id, { to, ...renderCardMail(content, pictures) }, cut, mayBeSent)
      : this.sms.send({ id, to, text: renderCardSms(content) }, cut, mayBeSent);
  }
}
