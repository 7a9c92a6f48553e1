import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { NotFoundError } from '#platform/kernel/errors.js';
import { Config } from '#configuration/config.js';
import { query } from '#platform/database/connection.js';
import { CardsService } from '#loyalty/cards/cards.service.js';
import { isChannel } from '#outbound/messages/message-channel.js';
import { MessageSettingsService } from '#outbound/campaigns/message-settings.service.js';
import { loadAsset } from '#web/pages/assets.js';
import { renderHolderSms } from '#outbound/campaigns/holder-message-texts.js';
import type { CustomerLanguage, Localization } from '#translations/translations.js';
import { listCards } from '../customers/customer-list.controller.js';
import { listChannelBoxes, type ChannelBox, type PreviewView } from './message-views.js';

/** The style sheet of the pages of a message. */
export const MESSAGE_STYLE = loadAsset(import.meta.url, './assets/message-pages.css');

/** A store as its customers see it. */
type MessageStore = CustomerLanguage & { name: string };

type Option = { value: string; text: string };

/** What the forms of both kinds of messages offer. */
export type FormChoices = { boxes: ChannelBox[]; cards: Option[] };

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
    const link = `${this.config.publicUrl}/passes/…`;
    const sms = renderHolderSms({ title, text, store, link, ...language });
    return { store, title, text, sms, channels };
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
      boxes: listChannelBoxes(chosen.channels, localization),
      cards: [any, ...offered.map(({ id, name }) => ({ value: String(id), text: name }))],
    };
  }

  /** Says when nothing is sent. @returns blank without quiet hours */
  async describeQuietHours(accountId: number, { t }: Localization): Promise<string> {
    const { quiet } = await this.settings.get(accountId);
    return quiet === null ? '' : t.messagePages.detail.quiet({ from: quiet.from, to: quiet.to });
  }
}
