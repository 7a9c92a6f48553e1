import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { NotFoundError } from '#platform/kernel/errors.js';
import { Config } from '#configuration/config.js';
import { query } from '#platform/database/connection.js';
import { CardsService } from '#loyalty/cards/cards.service.js';
import {
  CHANNELS,
  isChannel,
  type HolderChannel,
  type Reach,
} from '#outbound/messages/message-channel.js';
import { Audiences } from '#outbound/campaigns/audiences.service.js';
import { MessageSettingsService } from '#outbound/campaigns/message-settings.service.js';
import { measureSms } from '#outbound/messages/gsm-7.js';
import { MessageLimits } from '#outbound/messages/message-limits.service.js';
import { loadAsset } from '#web/pages/assets.js';
import { renderHolderSms } from '#outbound/campaigns/holder-message-texts.js';
import type { CustomerLanguage, Localization } from '#translations/translations.js';
import { listCards } from '../customers/customer-list.controller.js';
import {
  listChannelBoxes,
  toReachView,
  type ChannelBox,
  type PreviewView,
  type ReachView,
} from './message-views.js';

/** The style sheet of the pages of a message. */
export const MESSAGE_STYLE = loadAsset(import.meta.url, './assets/message-pages.css');

/** A store as its customers see it. */
type MessageStore = CustomerLanguage & { name: string };

type Option = { value: string; text: string };

/** What the forms of both kinds of messages offer. */
export type FormChoices = { boxes: ChannelBox[]; cards: Option[] };

/** Stands for the part of a link that differs for each card, and is as long. */
const SAMPLE_ID = '5f0c2a9e-7b1d-4c36-9a84-e2d7c1b0f358';

const FIND_STORE = {
  name: 'message_pages_store',
  text: `select display_name as name, locale, address_form as "addressForm" from accounts where id = $1`,
};

/** Reads what the pages about messages show besides the messages. */
@Injectable()
export class MessageStores {
  constructor(
    private readonly pool: Pool,
    private readonly cards: CardsService,
    private readonly settings: MessageSettingsService,
    private readonly audiences: Audiences,
    private readonly limits: MessageLimits,
    private readonly config: Config,
  ) {}

  /** Finds the name and the language of a store as its customers see it. @throws NotFoundError */
  async get(accountId: number): Promise<MessageStore> {
    const [store] = await query<MessageStore>(this.pool, {
      ...FIND_STORE,
      values: [accountId],
    });
    if (!store) throw new NotFoundError('Store');
    return store;
  }

  /** Creates the preview of a message. */
  async createPreview(
    accountId: number,
    message: { title: string; text: string; channels: readonly string[] },
    { t: { messagePages: t } }: Localization,
  ): Promise<PreviewView> {
    const { name: store, ...language } = await this.get(accountId);
    const channels = message.channels.filter(isChannel);
    const title = message.title.trim() || t.preview.headline;
    const text = message.text.trim() || t.preview.text;
    const link = `${this.config.publicUrl}/passes/${SAMPLE_ID}`;
    const sms = renderHolderSms({ title, text, store, link, ...language });
    const { alphabet, ...size } = measureSms(sms);
    const smsSize =
      alphabet === 'ucs2'
        ? `${t.preview.sms.size(size)} ${t.preview.sms.unicode}`
        : t.preview.sms.size(size);
    return { store, title, text, sms, smsSize, smsParts: size.parts, channels };
  }

  /** Describes whom a message reaches now, and what that takes of the limits of a day. */
  async describeReach(
    accountId: number,
    reach: Reach,
    { channels, smsParts }: PreviewView,
    localization: Localization,
  ): Promise<ReachView> {
    const t = localization.t.messagePages.reach;
    const { email, sms } = reach.byChannel;
    const left = async (channel: 'email' | 'sms') => ({
      left: await this.limits.countRemaining(accountId, channel),
    });
    const notes: Partial<Record<HolderChannel, string>> = {};
    if (email > 0) notes.email = t.emailLeft(await left('email'));
    if (sms > 0) {
      const total = sms * smsParts;
      notes.sms = t.smsLeft({ parts: smsParts, total, ...(await left('sms')) });
    }
    return toReachView(reach, channels, { notes, setUp: this.setUp }, localization);
  }

  /** Tells which channels are set up on this service. */
  get setUp(): Record<HolderChannel, boolean> {
    const { apple, google } = this.config;
    return {
      wallet: apple !== null || google !== null,
      web_push: true,
      ...this.audiences.setUp,
    };
  }

  /** Lists the channels of a new message. */
  listChannels(): HolderChannel[] {
    return CHANNELS.filter((channel) => this.setUp[channel]);
  }

  /** Lists what a form offers. @param chosen its card, which is offered even if it is archived */
  async listChoices(
    accountId: number,
    chosen: { channels: readonly string[]; card_id: string },
    localization: Localization,
  ): Promise<FormChoices> {
    const cards = await listCards(this.cards, accountId, 'all');
    const offered = cards.filter(
      ({ id, archived_at }) => archived_at === null || String(id) === chosen.card_id,
    );
    const any = { value: '', text: localization.t.messagePages.form.anyCard };
    return {
      boxes: listChannelBoxes(chosen.channels, this.setUp, localization),
      cards: [any, ...offered.map(({ id, name }) => ({ value: String(id), text: name }))],
    };
  }

  /** Says when nothing is sent. @returns blank without quiet hours */
  async describeQuietHours(accountId: number, { t }: Localization): Promise<string> {
    const { quiet } = await this.settings.get(accountId);
    return quiet === null ? '' : t.messagePages.detail.quiet({ from: quiet.from, to: quiet.to });
  }
}
