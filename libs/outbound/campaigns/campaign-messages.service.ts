import { Injectable } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import { Pool } from 'pg';
import { getNowMs } from '#platform/kernel/clock.js';
import { DamagedHistoryError, NotFoundError, RejectedError } from '#platform/kernel/errors.js';
import { Batcher } from '#platform/database/batcher.js';
import { inTransaction } from '#platform/database/connection.js';
import { KeyedReads } from '#platform/database/keyed-reads.js';
import { RecordMessage } from '#loyalty/customers/customer-messages.commands.js';
import { CardMessageContents } from '#outbound/messages/card-message-contents.service.js';
import { CardMessagePictures } from '#outbound/messages/card-message-pictures.service.js';
import {
  CHANNELS,
  chooseChannel,
  findTellingReason,
  routeBy,
  type HolderChannel,
  type MessageReason,
} from '#outbound/messages/message-channel.js';
import type {
  Choice,
  LoadedMessage,
  Message,
  MessageKind,
  Rendered,
} from '#outbound/messages/message-sending.service.js';
import { OutgoingMessages } from '#outbound/messages/outgoing-messages.service.js';
import { PassMessageWriter } from '#outbound/passes/pass-messages.service.js';
import { Audiences, type Addressee } from './audiences.service.js';
import { renderHolderMail, renderHolderSms } from './holder-message-texts.js';
import { MessageContexts, type MessageContext } from './message-contexts.service.js';
import { MessageSettingsService } from './message-settings.service.js';
import { findAudibleTime } from './quiet-hours.js';

/** Messages on passes are written together, because each batch holds the lock under which passes change. */
const MAX_BATCH = 100;
/** A pass shows one message: another one for the same pass waits for a later batch. */
const NEXT_BATCH_MS = 1_000;

type PassItem = { message: Message; context: MessageContext; customerCardId: number };

/** Messages that stores write to the holders of their cards. Each is recorded in the history of its customer. */
@Injectable()
export class CampaignMessages implements MessageKind {
  readonly name = 'campaign';
  readonly channels = CHANNELS;
  readonly isSentOnce = true;
  readonly isRecorded = true;
  readonly limits = {
    reasons: { email: 'email_limit', sms: 'sms_limit', address: 'address_limit' },
    isAwaited: true,
  } as const satisfies MessageKind['limits'] & { reasons: Record<string, MessageReason> };
  private readonly addressees = new KeyedReads<number, Addressee>((ids) =>
    this.audiences.findAddressees(ids),
  );
  private readonly passes = new Batcher<PassItem, boolean>(1, MAX_BATCH, (items) =>
    this.writeOnPasses(items),
  );

  constructor(
    private readonly pool: Pool,
    private readonly queue: OutgoingMessages,
    private readonly contexts: MessageContexts,
    private readonly audiences: Audiences,
    private readonly settings: MessageSettingsService,
    private readonly writer: PassMessageWriter,
    private readonly cardContents: CardMessageContents,
    private readonly pictures: CardMessagePictures,
    private readonly commands: CommandBus,
  ) {}

  async load(message: Message): Promise<LoadedMessage | undefined> {
    // Before the quiet hours, so that these are at least as new as those that it has.
    const context = await this.findContext(message);
    const [addressee, { quiet }] = await Promise.all([
      this.findAddressee(message),
      this.settings.getStored(message.accountId),
    ]);
    if (!addressee) return undefined;
    return {
      customerId: addressee.customerId,
      skipReason: context.skipReason,
      audibleAt: findAudibleTime(getNowMs(), quiet, context.timeZone),
      hours: context.hours,
      choose: (refused) => this.choose(message, context, addressee, refused),
      render: (channel) => this.render(message, context, addressee, channel),
      record: () => this.record(message, context, addressee.customerId),
    };
  }

  /** Records a message in the history of its customer, or of whoever goes on for them by then. An erased one's has it not. */
  private async record(
    message: Message,
    context: MessageContext,
    customerId: number,
  ): Promise<void> {
    const { uuid, accountId, channel } = message;
    const { announcementId, ruleId, title, text, actor } = context;
    const by = {
      accountId,
      actor: actor ?? { type: 'system', id: 0 },
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
      const addressee = await this.findAddressee(message);
      if (addressee === undefined || addressee.customerId === customerId) return;
      await this.record(message, context, addressee.customerId);
    }
  }

  private async findContext({ id }: Message): Promise<MessageContext> {
    const context = await this.contexts.find(id);
    if (!context) throw new Error(`message ${id} has no store`);
    return context;
  }

  private async findAddressee({ customerId }: Message): Promise<Addressee | undefined> {
    return customerId === null ? undefined : this.addressees.find(customerId);
  }

  private choose(
    message: Message,
    { channels }: MessageContext,
    { person }: Addressee,
    refused: readonly HolderChannel[],
  ): Choice {
    const left = channels.filter((candidate) => !refused.includes(candidate));
    const choice = chooseChannel(person, left, this.audiences.setUp);
    if (choice.channel !== null) return { channel: choice.channel, reason: null };
    const formerReason = refused.length > 0 ? message.reason : null;
    return { channel: null, reason: formerReason ?? findTellingReason(choice) ?? 'no_card' };
  }

  private async render(
    message: Message,
    context: MessageContext,
    { customerId }: Addressee,
    channel: HolderChannel,
  ): Promise<Rendered> {
    const customerCardId = await this.contexts.findCard(customerId, channel, context);
    if (customerCardId === undefined) return { kind: 'outdated' };
    if (channel === 'wallet' || channel === 'web_push') {
      return { kind: 'pass', write: () => this.passes.add({ message, context, customerCardId }) };
    }
    const card = await this.cardContents.find(customerCardId);
    // Its holder was erased just now.
    if (!card) return { kind: 'outdated' };
    const { contact, content, pictured, smsCountries } = card;
    const route = routeBy(channel, contact, { ...this.audiences.setUp, smsCountries });
    if (route.kind !== 'send') {
      const missing: MessageReason = channel === 'email' ? 'no_email' : 'no_phone';
      const reason: MessageReason = route.reason === 'no_address' ? missing : 'country';
      return { kind: 'unreachable', reason };
    }
    const { to } = route;
    if (channel === 'sms') {
      return { kind: 'sms', to, text: renderHolderSms(context, content), customerCardId };
    }
    const pictures = await this.pictures.drawIfPossible(pictured);
    const mail = { to, ...renderHolderMail(context, content, pictures) };
    return { kind: 'email', mail, customerCardId };
  }

  /** Writes messages on passes and marks them as sent, in one transaction. */
  private async writeOnPasses(items: PassItem[]): Promise<PromiseSettledResult<boolean>[]> {
    const firsts = new Map<number, PassItem>();
    const waiting: PassItem[] = [];
    for (const item of items) {
      if (firsts.has(item.customerCardId)) waiting.push(item);
      else firsts.set(item.customerCardId, item);
    }
    const marked = await inTransaction(this.pool, async (client) => {
      const sent = [...firsts.values()].map((item) => ({ ...item, job: item.message }));
      const written = await this.queue.markAllSent(sent, client);
      await this.writer.write(
        client,
        written.map(({ message, context, customerCardId }) => ({
          customerCardId,
          accountId: message.accountId,
          message: {
            id: message.id,
            place: message.channel === 'wallet' ? 'wallet' : 'browser',
            title: context.title,
            text: context.text,
          },
        })),
      );
      return new Set(written.map(({ message }) => message));
    });
    for (const { message } of waiting) {
      await this.queue.wait(message, new Date(getNowMs() + NEXT_BATCH_MS));
    }
    return items.map(({ message }) => ({ status: 'fulfilled', value: marked.has(message) }));
  }
}
