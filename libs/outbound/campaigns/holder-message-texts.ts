import {
  toMailFrame,
  toSingleLine,
  type CardMessageContent,
  type CardPictures,
} from '#outbound/messages/card-message-texts.js';
import { toPlainText } from '#outbound/messages/gsm-7.js';
import type { IllustratedMail } from '#outbound/messages/mail.js';
import { renderStoreMail, type StoreMail } from '#outbound/messages/store-mail.js';
import { getCustomerTranslations } from '#translations/translations.js';

/** What a store writes to its customers. */
type HolderMessage = { title: string; text: string };

/** Returns the page that stops the messages to the holder of a card. @param link the page of the card */
function getStopLink(link: string): string {
  return `${link}/messages`;
}

/**
 * Creates a mail in the store's name, with the picture of the card that it leads to.
 * @param card the card, as the e-mail with its link shows it
 */
export function createHolderMail(
  { title, text }: HolderMessage,
  card: CardMessageContent,
  pictures: CardPictures | null,
): StoreMail {
  const { localization, frame } = toMailFrame(card, pictures);
  const t = localization.t.holderMessages;
  return {
    ...frame,
    subject: toSingleLine(title),
    title: () => title,
    opening: text.split('\n').filter((line) => line.trim() !== ''),
    button: { text: t.open, link: card.link },
    paragraphs: [],
    why: t.why,
    stop: { text: t.stop, link: getStopLink(card.link) },
  };
}

/** Renders the same as text and as HTML. */
export function renderHolderMail(
  ...[message, card, pictures]: Parameters<typeof createHolderMail>
): Omit<IllustratedMail, 'to'> {
  return {
    ...renderStoreMail(createHolderMail(message, card, pictures)),
    unsubscribeUrl: getStopLink(card.link),
  };
}

/** Renders an SMS, of as many segments as it takes. */
export function renderHolderSms(
  { text }: Pick<HolderMessage, 'text'>,
  {
    store,
    link,
    ...language
  }: Pick<CardMessageContent, 'store' | 'link' | 'locale' | 'addressForm'>,
): string {
  const t = getCustomerTranslations(language).t.holderMessages;
  return toPlainText(
    t.sms({ store: toSingleLine(store), text: toSingleLine(text), link: getStopLink(link) }),
  );
}
