import { Injectable, Logger } from '@nestjs/common';
import { Config } from '#configuration/config.js';
import { KnownErasures } from '#event-store/personal-keys/known-erasures.js';
import { findNextMailAttempt, type MailOutcome } from './mail.js';
import { chooseRoute, type MessageChannel, type Route } from './card-message.js';
import { renderCardMail, renderCardSms, type CardMessageContent } from './card-message-texts.js';
import { CardMessageContents, type FoundContent } from './card-message-contents.service.js';
import { CardMessages, type ClaimedMessage } from './card-messages.service.js';
import type { MessageQueue } from './message-queue.js';
import { MessageMetrics } from './message-metrics.service.js';
import type { SmsOutcome } from './sms-response.js';
import { SmsClient } from './sms.client.js';
import { SmtpClient } from './smtp.client.js';

type Outcome = MailOutcome | SmsOutcome;

/** The delay after a message went out of date before it was sent, because its recipient may have been erased. */
const REWRITE_DELAY_MS = 1_000;

const SHARE_USED_UP =
  'too many people signed up from the same network today, or at this store in all';
const PHONE_MISSING = 'no phone number was entered when signing up';

/** Sends card links to customers. Each message is looked up, addressed and rendered when it is sent. */
@Injectable()
export class CardMessageSending {
  private readonly log = new Logger('card messages');

  constructor(
    private readonly messages: CardMessages,
    private readonly contents: CardMessageContents,
    private readonly erasures: KnownErasures,
    private readonly smtp: SmtpClient,
    private readonly sms: SmsClient,
    private readonly metrics: MessageMetrics,
    private readonly config: Config,
  ) {}

  /** Creates one queue for each channel, so that neither waits for the other's server. */
  createQueue(channel: MessageChannel): MessageQueue<ClaimedMessage> {
    return {
      name: `card links by ${channel}`,
      claim: (limit) => this.messages.claim(channel, limit),
      send: (message, cut) => this.send(message, cut),
    };
  }

  private async send(message: ClaimedMessage, cut: AbortSignal): Promise<void> {
    const readAt = performance.now();
    const content = await this.contents.find(message.customerCardId);
    if (!content) return this.messages.finish(message, 'dropped', { reason: 'erased' });
    const route = this.routeTo(content, message.mailRefused);
    if (route.kind === 'drop') {
      return this.messages.finish(message, 'dropped', { reason: route.reason });
    }
    const { channel } = route;
    if (route.kind === 'hold') {
      return this.messages.finish({ ...message, channel }, 'held', { reason: route.reason });
    }
    if (channel !== message.channel) {
      return this.messages.redirect(message, channel, message.mailRefused);
    }
    if (message.heldChannels.includes(channel)) {
      return this.messages.finish(message, 'held', { reason: SHARE_USED_UP });
    }
    if (channel === 'sms' && message.phoneMissing) {
      return this.messages.finish(message, 'held', { reason: PHONE_MISSING });
    }
    if (channel === 'sms' && (await this.hasSentTooMany(message.accountId))) {
      return this.messages.finish(message, 'held', { reason: 'the store has sent too many SMS' });
    }
    const { messagesPerAddressPerDay } = this.config;
    if (!(await this.messages.countForAddress(message, route, messagesPerAddressPerDay))) return;
    const read = { subjectId: content.customerId, readAt };
    const now = () => performance.now();
    const outcome = await this.erasures.send(read, now, ({ erased, mayBeSent }) =>
      this.attempt({ ...route, id: message.id }, content.content, {
        cut: AbortSignal.any([cut, erased]),
        mayBeSent,
      }),
    );
    if (!outcome) {
      const soon = new Date(Date.now() + REWRITE_DELAY_MS);
      return this.messages.putOff(message, soon, 'it is being sent again');
    }
    this.metrics.countAttempt(`card_${channel}`, outcome.kind);
    if (outcome.kind === 'refused' && channel === 'email') {
      const other = this.routeTo(content, true);
      if (other.kind === 'send') return this.messages.redirect(message, other.channel, true);
    }
    await this.record(message, outcome);
  }

  private async hasSentTooMany(accountId: number): Promise<boolean> {
    const { smsPerDay } = this.config.limits;
    return (await this.messages.countSentSms(accountId, smsPerDay)) >= smsPerDay;
  }

  private routeTo({ contact, smsCountries }: FoundContent, mailRefused: boolean): Route {
    const setUp = { email: this.config.mail !== null, sms: this.config.sms !== null };
    return chooseRoute(contact, { ...setUp, smsCountries }, mailRefused);
  }

  private attempt(
    { channel, to, id }: { channel: MessageChannel; to: string; id: string },
    content: CardMessageContent,
    { cut, mayBeSent }: { cut: AbortSignal; mayBeSent: () => boolean },
  ): Promise<Outcome> {
    return channel === 'email'
      ? this.smtp.send(id, { to, ...renderCardMail(content) }, cut, mayBeSent)
      : this.sms.send({ id, to, text: renderCardSms(content) }, cut, mayBeSent);
  }

  private async record(message: ClaimedMessage, outcome: Outcome): Promise<void> {
    if (outcome.kind === 'sent') {
      this.log.debug(`message ${message.id} was sent`);
      const providerId = 'providerId' in outcome ? outcome.providerId : null;
      return this.messages.finish(message, 'sent', { providerId });
    }
    const { error: reason } = outcome;
    const description = `message ${message.id} could not be sent by ${message.channel} (${reason})`;
    if (outcome.kind === 'refused') {
      this.log.warn(description);
      return this.messages.finish(message, 'failed', { reason });
    }
    const now = new Date();
    const nextAttempt = findNextMailAttempt(message.attempts, message.enqueuedAt, now);
    if (!nextAttempt) {
      this.log.error(`${description}, and is not tried again`);
      return this.messages.finish(message, 'failed', { reason });
    }
    const retryInMs = 'retryInMs' in outcome ? (outcome.retryInMs ?? 0) : 0;
    const next = new Date(Math.max(nextAttempt.getTime(), now.getTime() + retryInMs));
    this.log.warn(`${description}; next attempt at ${next.toISOString()}`);
    await this.messages.putOff(message, next, reason);
  }
}
