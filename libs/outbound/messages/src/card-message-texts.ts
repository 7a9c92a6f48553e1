import { loadTemplate } from '#kernel/templates.js';
import { getTranslations } from '#translations/translations.js';
import type { Mail } from './mail.js';
import { MAX_SMS_SEPTETS, toPlainText, countSeptets } from './gsm-7.js';

/** The data that the texts are rendered from. None of them was typed by the recipient. */
export type CardMessageContent = {
  /** The name that the store shows to people. */
  store: string;
  /** The store's locale, a BCP 47 tag. */
  locale: string;
  link: string;
  /** The address of the store's logo; null without one. */
  logo: string | null;
};

/** Renders HTML that all mail programs understand: inline styles, with colours that suit light and dark. */
const mailView = loadTemplate<
  Record<'lang' | 'subject' | 'intro' | 'open' | 'link' | 'advice' | 'why' | 'store', string> &
    Pick<CardMessageContent, 'logo'>
>(import.meta.url, './views/card-mail.eta');

/** A shorter name would say nothing: the message is then sent in two segments instead. */
const MIN_NAME_LENGTH = 10;
const ELLIPSIS = '...';
/** Line ends, other control characters, and marks that change the text direction. */
const INVISIBLE = /[\p{Cc}\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]+/gu;

/** Puts a name on one line, for headers and texts. */
export function toSingleLine(name: string): string {
  return name.replaceAll(INVISIBLE, ' ').replaceAll(/\s+/g, ' ').trim();
}

/** Renders a mail in the store's name: as text, and as HTML with its logo and one button. It has no other link. */
export function renderCardMail({
  store: name,
  locale,
  link,
  logo,
}: CardMessageContent): Omit<Mail, 'to'> {
  const store = toSingleLine(name);
  const { t: translations, locale: lang } = getTranslations(locale);
  const t = translations.cardMessage;
  const paragraphs = [t.intro(store), link, t.advice, t.why(store), store];
  return {
    fromName: store,
    subject: t.subject(store),
    text: `${paragraphs.join('\n\n')}\n`,
    html: mailView({
      lang,
      subject: t.subject(store),
      intro: t.intro(store),
      open: t.open,
      link,
      advice: t.advice,
      why: t.why(store),
      store,
      logo,
    }),
  };
}

/** Renders an SMS: one segment of GSM-7 when that has the name's characters, with the name shortened to fit. */
export function renderCardSms({ store: name, locale, link }: CardMessageContent): string {
  const t = getTranslations(locale).t.cardMessage;
  const store = toSingleLine(name);
  const whole = toPlainText(t.sms(store, link));
  const septets = countSeptets(whole);
  if (septets === undefined || septets <= MAX_SMS_SEPTETS) return whole;
  const characters = [...toPlainText(store)];
  for (let length = characters.length - 1; length >= MIN_NAME_LENGTH; length--) {
    const shortened = `${characters.slice(0, length).join('').trimEnd()}${ELLIPSIS}`;
    const text = toPlainText(t.sms(shortened, link));
    if ((countSeptets(text) ?? Infinity) <= MAX_SMS_SEPTETS) return text;
  }
  return whole;
}
