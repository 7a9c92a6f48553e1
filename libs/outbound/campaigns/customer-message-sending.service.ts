import { Injectable, Logger } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import { Pool } from 'pg';
import { getNow, getNowMs } from '#platform/kernel/clock.js';
import { DamagedHistoryError, NotFoundError, RejectedError } from '#platform/kernel/errors.js';
import { Config } from '#configuration/config.js';
import { Batcher } from '#platform/database/batcher.js';
import { inTransaction } from '#platform/database/connection.js';
import { WindowCounts } from '#platform/database/window-counts.js';
import type { Job, JobOutcome } from '#platform/database/job-queue.js';
import type { JobHandler } from '#platform/database/job-runner.js';
import { Maintenance } from '#platform/database/maintenance.service.js';
import { CapOverrides } from '#platform/event-store/commands/cap-overrides.service.js';
import { KnownErasures } from '#platform/event-store/personal-keys/known-erasures.js';
import { RecordMessage } from '#loyalty/customers/customer-messages.commands.js';
import { CardMessageContents } from '#outbound/messages/card-message-contents.service.js';
import { CardMessagePictures } from '#outbound/messages/card-message-pictures.service.js';
import type { MessageChannel } from '#outbound/messages/card-message.js';
import {
  findLimits,
  releaseReservation,
  reserveMessage,
  type LimitedMessage,
} from '#outbound/messages/message-limits.service.js';
import { EmailBounces } from '#outbound/messages/email-bounces.service.js';
import type { MailOutcome } from '#outbound/messages/mail.js';
import type { SmsOutcome } from '#outbound/messages/sms-response.js';
import { judgeSmsNumber } from '#outbound/messages/sms-destination.js';
import { SmsClient } from '#outbound/messages/sms.client.js';
import { SmtpClient } from '#outbound/messages/smtp.client.js';
import { PassMessageWriter } from '#outbound/passes/pass-messages.service.js';
import { Audiences } from './audiences.service.js';
import { CustomerMessageQueue, type QueuedMessage } from './customer-message-queue.service.js';
import { renderHolderMail, renderHolderSms } from './holder-message-texts.js';
import { chooseChannel, type HolderChannel, type MessageReason } from './message-channel.js';
import {
  MessageContexts,
  type HolderCard,
  type MessageContext,
} from './message-contexts.service.js';
import { MessageSettingsService } from './message-settings.service.js';
import { findAudibleTime } from './quiet-hours.js';

const CONCURRENCY: Record<HolderChannel, number> = { wallet: 16, web_push: 16, email: 4, sms: 4 };
/** Messages on passes are written together, because each batch holds the lock under which passes change. */
const MAX_BATCH = 100;
const GIVE_UP_MS = 2 * 24 * 60 * 60_000;
/** While maintenance mode is on, during which nothing is sent. */
const MAINTENANCE_WAIT_MS = 5_000;
/** After a message went out of date before it was sent, because its recipient may have been erased. */
const REWRITE_DELAY_MS = 1_000;

/** After a message was beyond a limit of a day. There is room again as the messages of the day before end, one by one. */
const LIMIT_WAIT_MS = 60 * 60_000;

const STORE_LIMIT: Record<MessageChannel, MessageReason> = {
  email: 'email_limit',
  sms: 'sms_limit',
};

type Message = Job<QueuedMessage>;
type HolderContext = { context: MessageContext; card: HolderCard };
type PassItem = { message: Message; holder: HolderContext };

/** Sends a message that is rendered. @param to an e-mail address or a phone number */
type Send = (
  to: string,
  cut: AbortSignal,
  mayBeSent: () => boolean,
) => Promise<MailOutcome | SmsOutcome>;

/** Why the channel cannot send a message to this customer. The next one is tried. */
type Refusal = { kind: 'refused'; reason: MessageReason };

/** Sends messages to holders, and records them in their history. Each is looked up and rendered when it is sent. */
@Injectable()
export class CustomerMessageSending {
  private readonly log = new Logger('messages to customers');
  private readonly passes = new Batcher<PassItem, void>(1, MAX_BATCH, (items) =>
    this.writeOnPasses(items),
  );

  constructor(
    private readonly pool: Pool,
    private readonly queue: CustomerMessageQueue,
    private readonly contexts: MessageContexts,
    private readonly audiences: Audiences,
    private readonly settings: MessageSettingsService,
    private readonly writer: PassMessageWriter,
    private readonly erasures: KnownErasures,
    private readonly cardContents: CardMessageContents,
    private readonly pictures: CardMessagePictures,
    private readonly bounces: EmailBounces,
    private readonly smtp: SmtpClient,
    private readonly sms: SmsClient,
    private readonly counts: WindowCounts,
    private readonly overrides: CapOverrides,
    private readonly maintenance: Maintenance,
    private readonly commands: CommandBus,
    private readonly config: Config,
  ) {}

  /** Creates one handler for each channel, so that none waits for another's server. */
  createHandler(channel: HolderChannel): JobHandler<QueuedMessage> {
    return {
      queue: this.queue,
      concurrency: CONCURRENCY[channel],
      claim: (limit) => this.queue.claim(limit, channel),
      describeFailure: ({ id }) => `message ${id} to a customer failed (${channel})`,
      attempt: (message, cut, isLeased) => this.attempt(message, cut, isLeased),
      getGiveUpAt: ({ createdAt }) => new Date(createdAt.getTime() + GIVE_UP_MS),
    };
  }

  private async attempt(
    message: Message,
    cut: AbortSignal,
    isLeased: () => boolean,
  ): Promise<JobOutcome | void> {
    if (await this.maintenance.find()) {
      return this.queue.moveTo(message, new Date(getNowMs() + MAINTENANCE_WAIT_MS));
    }
    const readAt = performance.now();
    const context = await this.contexts.find(message.id);
    if (!context) throw new Error(`message ${message.id} has no store`);
    if (message.state === 'sent') return this.record(message, context);
    // The process that had it ended in between: it may have arrived.
    if (message.handedOverAt !== null) return this.queue.end(message, 'failed', 'unknown');
    const addressees = await this.audiences.findAddressees([message.customerId]);
    const addressee = addressees.get(message.customerId);
    if (!addressee) return this.queue.end(message, 'skipped', 'erased');
    const { customerId, person } = addressee;
    if (customerId !== message.customerId) return this.queue.readdress(message, customerId);
    if (!context.isStillTrue) return this.queue.end(message, 'skipped', 'past');
    const { quiet } = await this.settings.get(message.accountId);
    const now = getNowMs();
    const audibleAt = findAudibleTime(now, quiet, context.timeZone);
    if (audibleAt > now) return this.queue.moveTo(message, new Date(audibleAt));
    const { refusedChannels } = message;
    const channels = context.channels.filter((one) => !refusedChannels.includes(one));
    const choice = chooseChannel(person, channels, this.audiences.setUp);
    if (choice.channel === null) {
      const refusal = refusedChannels.length > 0 ? message.reason : null;
      return this.giveUp(message, refusal ?? choice.reasons[0]?.reason ?? 'no_card');
    }
    const { channel } = choice;
    if (channel !== message.channel) return this.queue.redirect(message, channel, null);
    const card = await this.contexts.findCard(message.customerId, channel, context);
    if (!card) return this.queue.moveTo(message, new Date(now + REWRITE_DELAY_MS));
    const holder = { context, card };
    if (channel === 'wallet' || channel === 'web_push') return this.passes.add({ message, holder });
    return this.handOver(message, holder, { readAt, cut, isLeased, channels });
  }

  /** Writes messages on passes and marks them as sent, in one transaction. */
  private async writeOnPasses(items: PassItem[]): Promise<PromiseSettledResult<void>[]> {
    // A pass shows one message: another one for the same pass waits for the next batch.
    const firsts = new Map<number, PassItem>();
    const waiting: PassItem[] = [];
    for (const item of items) {
      const { id } = item.holder.card;
      if (firsts.has(id)) waiting.push(item);
      else firsts.set(id, item);
    }
    await inTransaction(this.pool, async (client) => {
      const marked: PassItem[] = [];
      for (const item of firsts.values()) {
        const { message, holder } = item;
        if (await this.queue.markSent(message, holder.card.id, client)) marked.push(item);
      }
      await this.writer.write(
        client,
        marked.map(({ message, holder: { context, card } }) => ({
          customerCardId: card.id,
          accountId: message.accountId,
          message: {
            id: message.id,
            place: message.channel === 'wallet' ? 'wallet' : 'browser',
            title: context.title,
            text: context.text,
          },
        })),
      );
    });
    for (const { message } of waiting) {
      await this.queue.moveTo(message, new Date(getNowMs() + REWRITE_DELAY_MS));
    }
    return items.map(() => ({ status: 'fulfilled', value: undefined }));
  }

  /** Sends by e-mail or SMS. What the channel cannot send goes through the next one. */
  private async handOver(
    message: Message,
    holder: HolderContext,
    {
      readAt,
      cut,
      isLeased,
      channels,
    }: {
      readAt: number;
      cut: AbortSignal;
      isLeased: () => boolean;
      channels: HolderChannel[];
    },
  ): Promise<JobOutcome | void> {
    const to = findAddress(message, holder);
    if ('kind' in to) return this.refuse(message, to.reason, channels);
    const render = await this.prepare(message, holder);
    if (!render) return this.queue.end(message, 'skipped', 'erased');
    const limited: LimitedMessage = { ...message, table: 'customer_messages', ...to };
    const limits = await findLimits(this.overrides, this.config, message.accountId, to.channel);
    const reachedLimit = await reserveMessage(this.pool, this.counts, limited, limits);
    if (reachedLimit !== null) {
      const reason = reachedLimit === 'store' ? STORE_LIMIT[to.channel] : 'address_limit';
      return this.waitForRoom(message, reason);
    }
    if (!(await this.queue.handOver(message))) return;
    const read = { subjectId: message.customerId, readAt };
    const outcome = await this.erasures.send(
      read,
      () => performance.now(),
      ({ erased, mayBeSent }) =>
        render(to.to, AbortSignal.any([cut, erased]), () => mayBeSent() && isLeased()),
    );
    if (outcome?.kind === 'failed') return outcome;
    if (outcome?.kind !== 'sent') await releaseReservation(this.pool, this.counts, limited);
    if (!outcome) return this.queue.moveTo(message, new Date(getNowMs() + REWRITE_DELAY_MS));
    if (outcome.kind === 'refused') {
      if ('status' in outcome) {
        await this.bounces.record({
          accountId: message.accountId,
          customerId: message.customerId,
          messageId: message.uuid,
          address: to.to,
          status: outcome.status,
          sentAt: getNow(),
        });
      }
      this.log.warn(`message ${message.id} was refused (${message.channel}: ${outcome.error})`);
      return this.refuse(message, 'refused', channels);
    }
    await this.queue.markSent(message, holder.card.id);
  }

  /**
   * Lets a message beyond a limit of a day wait for its own channel. The next one may cost the store money that it did not
   * mean to spend.
   */
  private waitForRoom(message: Message, reason: MessageReason): Promise<void> {
    const dueAt = getNowMs() + LIMIT_WAIT_MS;
    return dueAt > message.createdAt.getTime() + GIVE_UP_MS
      ? this.giveUp(message, reason)
      : this.queue.moveTo(message, new Date(dueAt), reason);
  }

  private async refuse(
    message: Message,
    reason: MessageReason,
    channels: HolderChannel[],
  ): Promise<void> {
    const next = channels[channels.indexOf(message.channel) + 1];
    // The next one is checked as the first was.
    if (next !== undefined) return this.queue.redirect(message, next, reason);
    return this.giveUp(message, reason);
  }

  private giveUp(message: Message, reason: MessageReason): Promise<void> {
    return this.queue.end(message, reason === 'refused' ? 'failed' : 'skipped', reason);
  }

  /**
   * Renders a message, and returns what sends it.
   * @returns undefined once the customer is erased
   */
  private async prepare(
    { uuid, channel }: Message,
    { context, card }: HolderContext,
  ): Promise<Send | undefined> {
    if (channel === 'sms') {
      const link = `${this.config.publicUrl}/passes/${card.uuid}`;
      const text = renderHolderSms({ ...context, link });
      return (to, cut, mayBeSent) => this.sms.send({ id: uuid, to, text }, cut, mayBeSent);
    }
    const content = await this.cardContents.find(card.id);
    if (!content) return undefined;
    const pictures = await this.pictures.drawIfPossible(content.pictured);
    const mail = renderHolderMail(context, content.content, pictures);
    return (to, cut, mayBeSent) => this.smtp.send(uuid, { to, ...mail }, cut, mayBeSent);
  }

  /** Records a message in the history of its customer, or of the one who goes on for them. An erased one's has it not. */
  private async record(message: Message, context: MessageContext): Promise<void> {
    const { uuid, accountId, channel } = message;
    const addressees = await this.audiences.findAddressees([message.customerId]);
    const { customerId } = addressees.get(message.customerId) ?? message;
    const { announcementId, ruleId, title, text } = context;
    const by = {
      accountId,
      actor: context.actor ?? { type: 'system', id: 0 },
      channel: 'system',
      requestId: `message-${uuid}`,
    };
    const sent = { messageId: uuid, announcementId, ruleId, channel, personal: { title, text } };
    try {
      await this.commands.execute(new RecordMessage(by, customerId, sent));
    } catch (error) {
      const isUnrecordable = [NotFoundError, RejectedError, DamagedHistoryError].some(
        (kind) => error instanceof kind,
      );
      if (!isUnrecordable) throw error;
    }
    await this.queue.markRecorded(message);
  }
}

/** Finds where a message goes. */
function findAddress(
  { channel }: Message,
  { context, card }: HolderContext,
): { channel: MessageChannel; to: string } | Refusal {
  if (channel === 'email') {
    return card.email === null ? refuse('no_email') : { channel, to: card.email };
  }
  if (card.phone === null) return refuse('no_phone');
  const isAllowed = judgeSmsNumber(card.phone, context.smsCountries).kind === 'allowed';
  return isAllowed ? { channel: 'sms', to: card.phone } : refuse('country');
}

function refuse(reason: MessageReason): Refusal {
  return { kind: 'refused', reason };
}
