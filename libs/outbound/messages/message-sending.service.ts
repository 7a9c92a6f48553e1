import { Injectable, Logger } from '@nestjs/common';
import { getNow, getNowMs } from '#platform/kernel/clock.js';
import type { Job, JobOutcome } from '#platform/database/job-queue.js';
import type { JobHandler } from '#platform/database/job-runner.js';
import { Maintenance } from '#platform/database/maintenance.service.js';
import { KnownErasures } from '#platform/event-store/personal-keys/known-erasures.js';
import { EmailBounces } from './email-bounces.service.js';
import { MAIL_RETRIES, type IllustratedMail, type Mail, type MailOutcome } from './mail.js';
import type { HolderChannel, UnsentReason } from './message-channel.js';
import { MessageLimits, type ReachedLimit } from './message-limits.service.js';
import { MessageMetrics } from './message-metrics.service.js';
import {
  OutgoingMessages,
  type OutgoingKind,
  type OutgoingMessage,
} from './outgoing-messages.service.js';
import type { SmsOutcome } from './sms-response.js';
import { SmsClient } from './sms.client.js';
import { SmtpClient } from './smtp.client.js';

/**
 * What is sent at once, each e-mail over a connection of its own. Those of a batch are read, counted and recorded together. A
 * process that is killed leaves as many of a campaign without a known outcome.
 */
const CONCURRENCY: Record<HolderChannel, number> = { wallet: 16, web_push: 16, email: 16, sms: 4 };
/** While maintenance mode is on, during which nothing is recorded. */
const MAINTENANCE_WAIT_MS = 5_000;
/** After a message went out of date before it was sent, because its recipient may have been erased. */
const REWRITE_DELAY_MS = 1_000;
/** After a message was beyond a limit of a day. There is room again as the messages of the day before end, one by one. */
const LIMIT_WAIT_MS = 60 * 60_000;

/** A claimed message. */
export type Message = Job<OutgoingMessage>;

/**
 * A message as it would be sent by a channel now.
 * - pass: `write` writes it on the pass, marks it as sent in the same transaction, and returns whether it did
 * - unreachable: the channel cannot send it to this customer, and the next one is tried
 * - outdated: what it is made from has just changed, and is read again
 */
export type Rendered =
  | { kind: 'email'; mail: Mail | IllustratedMail; customerCardId: number | null }
  | { kind: 'sms'; to: string; text: string; customerCardId: number | null }
  | { kind: 'pass'; write: () => Promise<boolean> }
  | { kind: 'unreachable'; reason: string }
  | { kind: 'outdated' }
  | { kind: 'failed'; error: string };

/**
 * What a message is sent with, as it is now.
 * @property customerId the customer who goes on for its recipient; null: an e-mail of the service
 * @property skipReason why it is not to be sent any more; null: it is
 * @property audibleAt ms since 1970: before, the store wants nobody to be disturbed
 * @property hours by which that was found, see `renderHours`
 */
export type LoadedMessage = {
  customerId: number | null;
  skipReason: string | null;
  audibleAt: number;
  hours?: string;
  /**
   * Chooses the channel. With a reason, the message is held until the operator has set up the channel or a user sends it;
   * without a channel, it is not sent for that reason.
   */
  choose: (refused: readonly HolderChannel[]) => Choice;
  render: (channel: HolderChannel) => Promise<Rendered>;
  /** Records that it was sent. */
  record?: () => Promise<void>;
};
export type Choice =
  | { channel: HolderChannel; reason: string | null }
  | { channel: null; reason: string };

/** What is particular to the messages of a kind. */
export type MessageKind = {
  name: OutgoingKind;
  channels: readonly HolderChannel[];
  /** Whether one that may have arrived is never sent again. */
  isSentOnce: boolean;
  /**
   * What becomes of a message beyond a limit: it waits for its own channel, as the next one may cost the store money that it
   * did not mean to spend, or is held. Null: no limits.
   */
  limits: { reasons: Record<ReachedLimit, string>; isAwaited: boolean } | null;
  /** @returns undefined once the recipient was erased */
  load: (message: Message) => Promise<LoadedMessage | undefined>;
  /** Whether a message that was sent is recorded. */
  isRecorded: boolean;
};

type Attempt = {
  message: Message;
  loaded: LoadedMessage;
  cut: AbortSignal;
  isLeased: () => boolean;
};

/** Sends messages to people. Each is looked up, addressed and rendered when it is sent. */
@Injectable()
export class MessageSending {
  private readonly log = new Logger('messages');

  constructor(
    private readonly queue: OutgoingMessages,
    private readonly limits: MessageLimits,
    private readonly erasures: KnownErasures,
    private readonly bounces: EmailBounces,
    private readonly smtp: SmtpClient,
    private readonly sms: SmsClient,
    private readonly metrics: MessageMetrics,
    private readonly maintenance: Maintenance,
  ) {}

  /** Creates one handler for each channel of a kind, so that none waits for another's server. */
  createHandlers(kind: MessageKind): { label: string; handler: JobHandler<OutgoingMessage> }[] {
    return kind.channels.map((channel) => ({
      label: createLabel(kind.name, channel),
      handler: {
        queue: this.queue,
        concurrency: CONCURRENCY[channel],
        claim: (limit) => this.queue.claim(limit, kind.name, channel),
        partition: [kind.name, channel],
        describeFailure: ({ uuid }) => `${kind.name} ${uuid} could not be sent by ${channel}`,
        attempt: (message, cut, isLeased) => this.attempt(kind, message, { cut, isLeased }),
        // What waited through an outage has its retries still before it.
        getGiveUpAt: ({ attempts, giveUpAt }) =>
          attempts > MAIL_RETRIES.delaysMs.length ? giveUpAt : undefined,
      },
    }));
  }

  private async attempt(
    kind: MessageKind,
    message: Message,
    lease: Pick<Attempt, 'cut' | 'isLeased'>,
  ): Promise<JobOutcome | void> {
    const { queue } = this;
    if (kind.isRecorded && (await this.maintenance.find())) {
      return queue.wait(message, new Date(getNowMs() + MAINTENANCE_WAIT_MS));
    }
    // The process that had it ended in between: it may have arrived.
    if (message.state === 'queued' && message.handedOverAt !== null) {
      return queue.end(message, 'failed', 'unknown');
    }
    const readAt = performance.now();
    const loaded = await kind.load(message);
    if (message.state === 'sent') return this.record(message, loaded);
    if (!loaded) return queue.end(message, 'skipped', 'erased');
    const { customerId } = loaded;
    if (customerId !== null && customerId !== message.customerId) {
      return queue.readdress(message, customerId);
    }
    if (loaded.skipReason !== null) return queue.end(message, 'skipped', loaded.skipReason);
    const { audibleAt, hours } = loaded;
    if (audibleAt > getNowMs()) return queue.wait(message, new Date(audibleAt), { hours });
    const { channel, reason } = loaded.choose(message.refusedChannels);
    if (channel === null) return this.giveUp(message, reason);
    const holdReason = reason ?? findHoldReason(message, channel);
    if (holdReason !== null) return queue.end(message, 'queued', holdReason, channel);
    if (channel !== message.channel) return queue.redirect(message, channel);
    const rendered = await loaded.render(channel);
    switch (rendered.kind) {
      case 'pass':
        if (!this.isCurrent(loaded.customerId, readAt)) return this.rewrite(message);
        return (await rendered.write()) ? this.record(message, loaded) : undefined;
      case 'unreachable':
        return this.refuse(loaded, message, rendered.reason);
      case 'outdated':
        return this.rewrite(message);
      case 'failed':
        this.metrics.countAttempt(createLabel(kind.name, channel), 'failed');
        return rendered;
      default:
        return this.handOver(kind, rendered, { message, loaded, ...lease }, readAt);
    }
  }

  /** Sends by e-mail or SMS. What the channel cannot send goes through the next one. */
  private async handOver(
    kind: MessageKind,
    rendered: Extract<Rendered, { kind: 'email' | 'sms' }>,
    { message, loaded, cut, isLeased }: Attempt,
    readAt: number,
  ): Promise<JobOutcome | void> {
    const { queue, limits } = this;
    const { kind: channel, customerCardId } = rendered;
    const to = rendered.kind === 'email' ? rendered.mail.to : rendered.to;
    const limit = kind.limits && (await limits.reserve(message, { channel, to }, kind.isSentOnce));
    if (kind.limits && limit) return this.meetLimit(message, kind.limits, limit);
    const outcome = await this.send(rendered, message, loaded.customerId, {
      readAt,
      cut,
      isLeased,
    });
    if (outcome) this.metrics.countAttempt(createLabel(kind.name, channel), outcome.kind);
    const mayHaveArrived =
      outcome?.kind === 'sent' || (outcome?.kind === 'failed' && outcome.mayHaveArrived === true);
    if (kind.limits && !mayHaveArrived) await limits.release(message, { channel, to });
    if (outcome?.kind === 'failed') {
      const isUnknown = kind.isSentOnce && mayHaveArrived;
      return isUnknown ? queue.end(message, 'failed', 'unknown') : outcome;
    }
    if (!outcome) return this.rewrite(message);
    if (kind.name === 'mail') return outcome.kind === 'sent' ? { kind: 'done' } : outcome;
    if (outcome.kind === 'refused') {
      this.log.warn(`message ${message.uuid} was refused (${channel}: ${outcome.error})`);
      const reason = kind.name === 'campaign' ? 'refused' : outcome.error;
      await this.refuse(loaded, message, reason, true);
      if ('status' in outcome && message.customerId !== null) {
        const { accountId, customerId, uuid: messageId } = message;
        const email = { messageId, address: to, status: outcome.status, sentAt: getNow() };
        await this.bounces.record({ accountId, customerId, ...email });
      }
      return;
    }
    const providerId = 'providerId' in outcome ? outcome.providerId : null;
    const isMarked = await queue.markSent(message, { customerCardId, providerId });
    if (isMarked && kind.isRecorded) await this.record(message, loaded);
  }

  /** Records a message that was sent. Whoever dies before that leaves it to the next one, once the lease has ended. */
  private async record(message: Message, loaded: LoadedMessage | undefined): Promise<void> {
    await loaded?.record?.();
    await this.queue.markRecorded(message);
  }

  /**
   * @returns undefined when nothing was sent on purpose, because its recipient may have been erased, another process may have
   * the message, or this one ends
   */
  private async send(
    rendered: Extract<Rendered, { kind: 'email' | 'sms' }>,
    { uuid }: Message,
    subjectId: number | null,
    { readAt, cut, isLeased }: Pick<Attempt, 'cut' | 'isLeased'> & { readAt: number },
  ): Promise<MailOutcome | SmsOutcome | undefined> {
    const send = async (
      signal: AbortSignal,
      mayBeSent: () => boolean,
    ): Promise<MailOutcome | SmsOutcome | undefined> => {
      let [hasBegun, isStopped] = [false, false];
      const ask = () => {
        const isAllowed = mayBeSent();
        hasBegun ||= isAllowed;
        isStopped ||= !isAllowed;
        return isAllowed;
      };
      const outcome =
        rendered.kind === 'email'
          ? await this.smtp.send(uuid, rendered.mail, signal, ask)
          : await this.sms.send({ id: uuid, to: rendered.to, text: rendered.text }, signal, ask);
      const isCut = signal.aborted;
      return isUnsent(outcome, { hasBegun, isStopped, isCut }) ? undefined : outcome;
    };
    if (subjectId === null) return send(cut, isLeased);
    const now = () => performance.now();
    return this.erasures.send({ subjectId, readAt }, now, ({ erased, mayBeSent }) =>
      send(AbortSignal.any([cut, erased]), () => mayBeSent() && isLeased()),
    );
  }

  /** Tells whether what was read of a customer may still be sent: they were not erased since. */
  private isCurrent(customerId: number | null, readAt: number): boolean {
    return customerId === null || this.erasures.isCurrent(customerId, readAt, performance.now());
  }

  /** Makes a message that went out of date before it was sent due again. */
  private rewrite(message: Message): Promise<void> {
    return this.queue.wait(message, new Date(getNowMs() + REWRITE_DELAY_MS));
  }

  private async meetLimit(
    message: Message,
    { reasons, isAwaited }: NonNullable<MessageKind['limits']>,
    limit: ReachedLimit,
  ): Promise<void> {
    const reason = reasons[limit];
    if (!isAwaited) return this.queue.end(message, 'queued', reason);
    const dueAt = new Date(getNowMs() + LIMIT_WAIT_MS);
    if (dueAt > message.giveUpAt) return this.giveUp(message, reason);
    return this.queue.wait(message, dueAt, { reason });
  }

  /** Tries the next channel. It is checked as the first was. */
  private async refuse(
    { choose }: LoadedMessage,
    message: Message,
    reason: string,
    isFailure = false,
  ): Promise<void> {
    const next = choose([...message.refusedChannels, message.channel]);
    if (next.channel !== null && next.reason === null) {
      return this.queue.redirect(message, next.channel, { reason });
    }
    await this.queue.end(message, isFailure ? 'failed' : 'skipped', reason);
  }

  private giveUp(message: Message, reason: string): Promise<void> {
    return this.queue.end(message, reason === 'refused' ? 'failed' : 'skipped', reason);
  }
}

/**
 * Tells whether nothing was sent on purpose, which is no failure.
 * @property hasBegun whether it was allowed to hand the message over @property isStopped whether it was forbidden at last
 * @property isCut whether this process ends
 */
export function isUnsent(
  { kind }: Pick<MailOutcome | SmsOutcome, 'kind'>,
  { hasBegun, isStopped, isCut }: Record<'hasBegun' | 'isStopped' | 'isCut', boolean>,
): boolean {
  return kind === 'failed' && !hasBegun && (isStopped || isCut);
}

/** Finds why only a user may send a message by a channel. */
function findHoldReason(
  { heldChannels, phoneMissing }: Message,
  channel: HolderChannel,
): UnsentReason | null {
  if (heldChannels.includes(channel)) return 'too_many_signups';
  return channel === 'sms' && phoneMissing ? 'phone_not_entered' : null;
}

/** Creates the label of metrics for a kind's messages by a channel. */
function createLabel(kind: OutgoingKind, channel: HolderChannel): string {
  switch (kind) {
    case 'mail':
      return 'mail';
    case 'card_link':
      return `card_${channel}`;
    case 'campaign':
      return `messages_${channel}`;
  }
}
