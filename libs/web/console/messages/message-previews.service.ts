import { Injectable } from '@nestjs/common';
import { getNow } from '#platform/kernel/clock.js';
import { Config } from '#configuration/config.js';
import { renderNotification } from '#outbound/apple-wallet/apple-message.js';
import type { Audience, Occasion } from '#outbound/campaigns/campaign.js';
import { Audiences } from '#outbound/campaigns/audiences.service.js';
import { MessageContexts, type CardChoice } from '#outbound/campaigns/message-contexts.service.js';
import { RuleReaches } from '#outbound/campaigns/rule-reaches.service.js';
import { createHolderMail, renderHolderSms } from '#outbound/campaigns/holder-message-texts.js';
import { CardImages } from '#outbound/card-images/card-images.service.js';
import {
  createLogoDesign,
  toDrawnLogoUrl,
  type LogoSize,
} from '#outbound/card-images/logo-design.js';
import {
  countFilledStamps,
  createStripDesign,
  toStripUrl,
} from '#outbound/card-images/strip-design.js';
import {
  CardMessageContents,
  type FoundContent,
} from '#outbound/messages/card-message-contents.service.js';
import type { PicturedCard } from '#outbound/messages/card-message-pictures.service.js';
import { measureSms } from '#outbound/messages/gsm-7.js';
import { createMailColors } from '#outbound/messages/mail-colors.js';
import { isChannel, type HolderChannel } from '#outbound/messages/message-channel.js';
import { listFootLines, type StoreMail } from '#outbound/messages/store-mail.js';
import { StoreTimes } from '#web/pages/store-times.service.js';
import type { Localization } from '#translations/translations.js';
import { skipWhenBusy } from './message-views.js';

/** A notification of a phone. @property note what the notification leaves out; blank: nothing */
type NotificationPreview = { title: string; lines: string[]; note: string };

type MailPreview = Pick<StoreMail, 'store' | 'subject' | 'summary' | 'button'> & {
  title: string;
  opening: string[];
  why: string;
  /** The text of the link that stops such e-mails. */
  stop: string;
  foot: string[];
  /** The paths of its pictures; null: the store has no card, or no logo. */
  pictures: { logo: string | null; strip: string | null; icon: IconPreview | null };
  buttonColor: string;
  isButtonDark: boolean;
};

/** The square of a notification: the logo, or a stamp in the colours of the card. */
type IconPreview = { path: string } | Record<'ground' | 'circle' | 'mark', string>;

/** @property notes what it costs, and where it goes */
type SmsPreview = { text: string; parts: number; notes: string[] };

/** The data of the part `message-preview`. */
export type PreviewView = {
  channels: readonly HolderChannel[];
  /** The language in which customers read it. */
  lang: string;
  notifications: { wallet: NotificationPreview[]; web_push: NotificationPreview[] };
  mail: MailPreview;
  sms: SmsPreview;
  /** Says whose card it shows. */
  about: string;
};

/** Somebody who gets the message. @property channel null: none reaches them */
export type PreviewRecipient = {
  customerId: number;
  channel: HolderChannel | null;
  customerCardId: number | null;
};
type PreviewCard = Pick<CardChoice, 'cardId'> & Partial<Pick<CardChoice, 'minStamps'>>;

/** The days that the pages of a rule look back, and the occasions that they show. */
export const DAYS = 30;
export const MAX_OCCASIONS = 10;

/** Stands for the part of a link that differs for each card, and is as long. */
const SAMPLE_ID = '5f0c2a9e-7b1d-4c36-9a84-e2d7c1b0f358';
const WHITE = '#FFFFFF';

/** Creates previews of messages, of the parts that are sent. */
@Injectable()
export class MessagePreviews {
  constructor(
    private readonly contents: CardMessageContents,
    private readonly audiences: Audiences,
    private readonly reaches: RuleReaches,
    private readonly contexts: MessageContexts,
    private readonly images: CardImages,
    private readonly times: StoreTimes,
    private readonly config: Config,
  ) {}

  /** Returns the locale in which customers of a store read messages. */
  async getLocale(accountId: number): Promise<string> {
    const { content } = await this.contents.findSample(accountId, null, SAMPLE_ID);
    return content.locale;
  }

  /** Finds somebody who gets an announcement, or would have got a message of a rule lately. */
  async findRecipient(
    accountId: number,
    trigger: Audience | Occasion,
    channels: HolderChannel[],
  ): Promise<PreviewRecipient | null> {
    if ('kind' in trigger) {
      const range = { after: null, limit: MAX_OCCASIONS };
      const rule = { accountId, trigger, channels };
      return chooseRecipient(await skipWhenBusy(this.reaches.list(rule, DAYS, range)));
    }
    const example = await this.audiences.findExample(accountId, trigger, channels);
    return example ? { ...example, customerCardId: null } : null;
  }

  /**
   * @param about the card that the message is about; null: any
   * @param recipient whose card it shows; null: one that nobody has
   */
  async create(
    accountId: number,
    message: { title: string; text: string; channels: readonly string[] },
    about: PreviewCard,
    recipient: PreviewRecipient | null,
    { t: { messagePages }, locale }: Localization,
  ): Promise<PreviewView> {
    const { preview: t } = messagePages;
    const title = message.title.trim() || t.headline;
    const text = message.text.trim() || t.text;
    const real = recipient && (await this.findContent(about, recipient));
    const { content, pictured, smsCountries } =
      real ?? (await this.contents.findSample(accountId, about.cardId, SAMPLE_ID));
    const mail = createHolderMail({ title, text }, content, null);
    const { store, summary } = mail;
    const timeZone = await this.times.getTimeZone(accountId);
    const date = { locale: content.locale, timeZone };
    const apple = renderNotification(text, getNow().toISOString(), date).split('\n');
    const sms = renderHolderSms({ text }, content);
    return {
      channels: message.channels.filter(isChannel),
      lang: mail.lang,
      notifications: {
        wallet: [
          { title: store, lines: apple, note: t.onBack },
          { title, lines: [text], note: t.onAndroid },
        ],
        web_push: [
          { title: store, lines: [title, text, `${summary.name}: ${summary.text}`], note: '' },
        ],
      },
      mail: await this.toMailPreview(mail, accountId, pictured),
      sms: { text: sms, ...describeSms(sms, smsCountries, t.sms, locale) },
      about: real ? `${t.ofRecipient} ${t.about}` : t.about,
    };
  }

  /** Finds the card that a message shows to somebody. Its link, which gives access to the card, is not theirs. */
  private async findContent(
    about: PreviewCard,
    { customerId, channel, customerCardId }: PreviewRecipient,
  ): Promise<FoundContent | undefined> {
    const { cardId, minStamps = null } = about;
    const choice = { cardId, minStamps, customerCardId };
    const id = await this.contexts.findCard(customerId, channel ?? 'email', choice);
    const card = id === undefined ? undefined : await this.contents.find(id);
    const link = `${this.config.publicUrl}/passes/${SAMPLE_ID}`;
    return card && { ...card, content: { ...card.content, link } };
  }

  private async toMailPreview(
    mail: StoreMail,
    accountId: number,
    pictured: PicturedCard | null,
  ): Promise<MailPreview> {
    const { store, subject, summary, opening = [], button, stop } = mail;
    const { lightButton } = createMailColors(mail.accent);
    return {
      store,
      subject,
      summary,
      opening,
      button,
      stop: stop?.text ?? '',
      title: mail.title({ store }),
      why: mail.why({ store }),
      foot: listFootLines(mail),
      pictures: await this.findPictures(accountId, pictured),
      buttonColor: lightButton.ground,
      isButtonDark: lightButton.text === WHITE,
    };
  }

  private async findPictures(
    accountId: number,
    pictured: PicturedCard | null,
  ): Promise<MailPreview['pictures']> {
    if (pictured === null) return { logo: null, strip: null, icon: null };
    const { card, rewards, stampsCount, logo } = pictured;
    const { publicUrl } = this.config;
    const design = createStripDesign(card, rewards);
    const hash = await this.images.remember(accountId, design);
    const url = toStripUrl(publicUrl, hash, countFilledStamps(stampsCount, design), '2x');
    const strip = new URL(url).pathname;
    if (logo === null) {
      const { cardColor: ground, stampBackgroundColor: circle, stampColor: mark } = card;
      return { logo, strip, icon: { ground, circle, mark } };
    }
    const drawn = await this.images.remember(accountId, createLogoDesign(logo, card.cardColor));
    const toPath = (size: LogoSize) => new URL(toDrawnLogoUrl(publicUrl, drawn, size)).pathname;
    return { logo: toPath('banner'), strip, icon: { path: toPath('icon@3x') } };
  }
}

/** Chooses somebody whom the message reaches, else anybody. */
export function chooseRecipient(people: PreviewRecipient[] | null): PreviewRecipient | null {
  return people?.find(({ channel }) => channel !== null) ?? people?.[0] ?? null;
}

function describeSms(
  sms: string,
  countries: readonly string[],
  t: Localization['t']['messagePages']['preview']['sms'],
  locale: string,
): { parts: number; notes: string[] } {
  const { alphabet, ...size } = measureSms(sms);
  const names = new Intl.DisplayNames(locale, { type: 'region' });
  const list = new Intl.ListFormat(locale).format(countries.map((code) => names.of(code) ?? code));
  return {
    parts: size.parts,
    notes: [
      t.size(size),
      ...(alphabet === 'ucs2' ? [t.unicode] : []),
      list === '' ? t.noCountry : t.countries({ countries: list }),
    ],
  };
}
