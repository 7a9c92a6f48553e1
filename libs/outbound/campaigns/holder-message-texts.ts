import {
  toMailFrame,
  toSingleLine,
  type CardMessageContent,
  type CardPictures,
} from '#outbound/messages/card-message-texts.js';
import { toPlainText } from '#outbound/messages/gsm-7.js';
import type { IllustratedMail } from '#outbound/messages/mail.js';
import { renderStoreMail } from '#outbound/messages/store-mail.js';
import { getCustomerTranslations, type CustomerLanguage } from '#translations/translations.js';

/** What a message is rendered from. */
export type HolderMessage = CustomerLanguage & {
  title: string;
  text: string;
  /** The name that the store shows to people. */
  store: string;
  /** The page of the card; that which stops messages is below it. */
  link: string;
};

/** Returns the page that stops the messages to the holder of a card. @param link the page of the card */
function getStopLink(link: string): string {
  return `${link}/messages`;
}

/**
 * Renders a mail in the store's name, as text and as HTML, with the picture of the card that it leads to.
 * @param card the card, as the e-mail with its link shows it
 */
export function renderHolderMail(
  { title, text }: Pick<HolderMessage, 'title' | 'text'>,
  card: CardMessageContent,
  pictures: CardPictures | null,
): Omit<IllustratedMail, 'to'> {
  const { localization, frame } = toMailFrame(card, pictures);
  const t = localization.t.holderMessages;
  const stopLink = getStopLink(card.link);
  return {
    ...renderStoreMail({
      ...frame,
      subject: toSingleLine(title),
      title: () => title,
      opening: text.split('\n').filter((line) => line.trim() !== ''),
      button: { text: t.open, link: card.link },
      paragraphs: [],
      why: t.why,
      stop: { text: t.stop, link: stopLink },
    }),
    unsubscribeUrl: stopLink,
  };
}

/** Renders an SMS, of as many segments as it takes. */
export function renderHolderSms(message: HolderMessage): string {
  const { store, text, link } = message;
  const t = getCustomerTranslations(message).t.holderMessages;
  return toPlainText(
    t.sms({ store: toSingleLine(store), text: toSingleLine(text), link: getStopLink(link) }),
  );
}
