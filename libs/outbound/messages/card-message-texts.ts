import type { AddressForm } from '#translations/address-form.js';
import { getCustomerTranslations, type Localization } from '#translations/translations.js';
import type { ContactDetails } from '#loyalty/accounts/account.events.js';
import type { IllustratedMail, MailPicture } from './mail.js';
import { MAX_SMS_SEPTETS, toPlainText, countSeptets } from './gsm-7.js';
import { renderStoreMail } from './store-mail.js';

/** The data that the texts are rendered from. None of them was typed by the recipient. */
export type CardMessageContent = {
  /** The name that the store shows to people. */
  store: string;
  /** The store's locale, a BCP 47 tag. */
  locale: string;
  addressForm: AddressForm | null;
  contact: ContactDetails;
  link: string;
  card: { name: string; color: string; stampsCount: number; stampsRequired: number };
};

/** The pictures of a card. @property logo null without one */
export type CardPictures = { logo: MailPicture | null; strip: MailPicture };

/** A shorter name would say nothing: the message is then sent in two segments instead. */
const MIN_NAME_LENGTH = 10;
const ELLIPSIS = '...';
/** Line ends, other control characters, and marks that change the text direction. */
const INVISIBLE = /[\p{Cc}\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]+/gu;

/** Puts a name on one line, for headers and texts. */
export function toSingleLine(name: string): string {
  return name.replaceAll(INVISIBLE, ' ').replaceAll(/\s+/g, ' ').trim();
}

/**
 * Renders a mail in the store's name, as text and as HTML with the picture of the card. It has no link but the card's and
 * those of the store's contact details.
 * @param asksConsent whether the page of the link asks for the consent to e-mails
 */
export function renderCardMail(
  content: CardMessageContent,
  pictures: CardPictures | null,
  asksConsent = false,
): Omit<IllustratedMail, 'to'> {
  const { localization, frame } = toMailFrame(content, pictures);
  const t = localization.t.cardMessage;
  return renderStoreMail({
    ...frame,
    subject: t.subject({ store: frame.store }),
    title: t.intro,
    button: { text: t.open, link: content.link },
    paragraphs: asksConsent ? [t.confirm.email({ store: frame.store }), t.advice] : [t.advice],
    why: t.why,
  });
}

function summarizeBalance(
  { stampsCount, stampsRequired }: CardMessageContent['card'],
  localization: Localization,
): string {
  const { card, stamps } = localization.t;
  if (stampsCount > stampsRequired) return stamps.count({ count: stampsCount });
  return card.stampsOf({ have: stampsCount, need: stampsRequired });
}

/** Renders the parts of an e-mail that are the same in every one about a card. */
export function toMailFrame(
  { store: name, contact, card, ...language }: CardMessageContent,
  pictures: CardPictures | null,
) {
  const localization = getCustomerTranslations(language);
  return {
    localization,
    frame: {
      lang: localization.locale,
      store: toSingleLine(name),
      contact,
      accent: card.color,
      pictures,
      summary: { name: toSingleLine(card.name), text: summarizeBalance(card, localization) },
    },
  };
}

/**
 * Renders an SMS: one segment of GSM-7 when that has the name's characters, with the name shortened to fit.
 * @param asksConsent whether the page of the link asks for the consent to text messages
 */
export function renderCardSms(
  {
    store: name,
    link,
    ...language
  }: Pick<CardMessageContent, 'store' | 'locale' | 'addressForm' | 'link'>,
  asksConsent = false,
): string {
  const t = getCustomerTranslations(language).t.cardMessage;
  const render = asksConsent ? t.confirm.sms : t.sms;
  const store = toSingleLine(name);
  const whole = toPlainText(render({ store, link }));
  const septets = countSeptets(whole);
  if (septets === undefined || septets <= MAX_SMS_SEPTETS) return whole;
  const characters = [...toPlainText(store)];
  for (let length = characters.length - 1; length >= MIN_NAME_LENGTH; length--) {
    const shortened = `${characters.slice(0, length).join('').trimEnd()}${ELLIPSIS}`;
    const text = toPlainText(render({ store: shortened, link }));
    if ((countSeptets(text) ?? Infinity) <= MAX_SMS_SEPTETS) return text;
  }
  return whole;
}
