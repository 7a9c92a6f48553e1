import { Injectable } from '@nestjs/common';
import { getNow } from '#platform/kernel/clock.js';
import { CardsService } from '#loyalty/cards/cards.service.js';
import { CHANNELS, type HolderChannel, type Reach } from '#outbound/messages/message-channel.js';
import type { Campaign } from '#outbound/campaigns/campaign.js';
import { Audiences } from '#outbound/campaigns/audiences.service.js';
import { MessageSettingsService } from '#outbound/campaigns/message-settings.service.js';
import { MessageLimits } from '#outbound/messages/message-limits.service.js';
import { findAudibleTime } from '#outbound/campaigns/quiet-hours.js';
import { renderLocalTime } from '#web/pages/local-time.js';
import { StoreTimes } from '#web/pages/store-times.service.js';
import { loadAsset } from '#web/pages/assets.js';
import type { Localization } from '#translations/translations.js';
import { listCards } from '../customers/customer-list.controller.js';
import type { PreviewView } from './message-previews.service.js';
import { listChannelBoxes, toReachView, type ChannelBox, type ReachView } from './message-views.js';

/** The style sheet of the pages of a message. */
export const MESSAGE_STYLE = loadAsset(import.meta.url, './assets/message-pages.css');

type Option = { value: string; text: string };

/** What the forms of both kinds of messages offer. */
export type FormChoices = { boxes: ChannelBox[]; cards: Option[] };

/** Reads what the pages about messages show besides the messages. */
@Injectable()
export class MessageStores {
  constructor(
    private readonly cards: CardsService,
    private readonly settings: MessageSettingsService,
    private readonly audiences: Audiences,
    private readonly limits: MessageLimits,
    private readonly times: StoreTimes,
  ) {}

  /** Describes whom a message reaches now, and what that takes of the limits of a day. */
  async describeReach(
    accountId: number,
    reach: Reach,
    { channels, sms: { parts } }: Pick<PreviewView, 'channels' | 'sms'>,
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
      notes.sms = t.smsLeft({ parts, total: sms * parts, ...(await left('sms')) });
    }
    return toReachView(reach, channels, notes, localization);
  }

  /** Lists the channels of a new message. */
  listChannels(): HolderChannel[] {
    return CHANNELS.filter((channel) => this.audiences.setUp[channel]);
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
      boxes: listChannelBoxes(chosen.channels, this.audiences.setUp, localization),
      cards: [any, ...offered.map(({ id, name }) => ({ value: String(id), text: name }))],
    };
  }

  /** Finds when a message goes out that is to be sent at a time: not within the quiet hours. */
  async findAudible(accountId: number, at: Date): Promise<Date> {
    const { quiet } = await this.settings.get(accountId);
    const zone = await this.times.getTimeZone(accountId);
    return new Date(findAudibleTime(at.getTime(), quiet, zone));
  }

  /** Says that the quiet hours last now, and until when a message waits. @returns blank outside of them */
  async findQuietNote(accountId: number, { t }: Localization): Promise<string> {
    const { quiet } = await this.settings.get(accountId);
    const zone = await this.times.getTimeZone(accountId);
    const now = getNow();
    if (quiet === null || (await this.findAudible(accountId, now)) <= now) return '';
    const time = renderLocalTime(now, zone).slice(11);
    return t.messagePages.detail.quietNow({ now: time, to: quiet.to });
  }

  /** Says when nothing is sent; of a draft, that it would wait now. @returns blank without quiet hours */
  async describeQuietHours(
    { accountId, state }: Pick<Campaign, 'accountId' | 'state'>,
    localization: Localization,
  ): Promise<string> {
    const { t } = localization;
    const { quiet } = await this.settings.get(accountId);
    const note = state === 'draft' ? await this.findQuietNote(accountId, localization) : '';
    if (note !== '') return note;
    return quiet === null ? '' : t.messagePages.detail.quiet({ from: quiet.from, to: quiet.to });
  }
}
