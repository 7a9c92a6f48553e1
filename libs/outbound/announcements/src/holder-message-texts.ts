import { loadTemplate } from '#kernel/templates.js';
import { toSingleLine } from '#messages/card-message-texts.js';
import { toPlainText } from '#messages/gsm-7.js';
import type { Mail } from '#messages/mail.js';
import { getCustomerTranslations, type CustomerLanguage } from '#translations/translations.js';

/** What a message is rendered from. */
export type HolderMessage = CustomerLanguage & {
  title: string;
  text: string;
  /** The name that the store shows to people. */
  store: string;
  /** The page of the card; that which stops messages is below it. */
  link: string;
  /** The address of the store's logo; null without one. */
  logo: string | null;
};

const mailView = loadTemplate<
  Record<'lang' | 'title' | 'open' | 'link' | 'why' | 'stop' | 'stopLink' | 'store', string> & {
    paragraphs: string[];
    logo: string | null;
  }
>(import.meta.url, './views/holder-mail.eta');

/** Returns the page that stops the messages to the holder of a card. @param link the page of the card */
export function getStopLink(link: string): string {
  return `${link}/messages`;
}

/** Renders a mail in the store's name, as text and as HTML. */
export function renderHolderMail(message: HolderMessage): Omit<Mail, 'to'> {
  const { title, text, link, logo } = message;
  const store = toSingleLine(message.store);
  const { t: translations, locale: lang } = getCustomerTranslations(message);
  const t = translations.holderMessages;
  const subject = toSingleLine(title);
  const stopLink = getStopLink(link);
  const plain = [title, text, `${t.open}: ${link}`, `${t.why(store)} ${t.stop}: ${stopLink}`];
  return {
    fromName: store,
    subject,
    text: `${plain.join('\n\n')}\n`,
    html: mailView({
      lang,
      title,
      paragraphs: text.split('\n').filter((line) => line.trim() !== ''),
      open: t.open,
      link,
      why: t.why(store),
      stop: t.stop,
      stopLink,
      store,
      logo,
    }),
    unsubscribeUrl: stopLink,
  };
}

/** Renders an SMS, of as many segments as it takes. */
export function renderHolderSms(message: HolderMessage): string {
  const { store, text, link } = message;
  const t = getCustomerTranslations(message).t.holderMessages;
  return toPlainText(t.sms(toSingleLine(store), toSingleLine(text), getStopLink(link)));
}
