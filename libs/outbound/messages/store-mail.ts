import { escapeHtml, loadTemplate } from '#platform/kernel/templates.js';
import { toPhoneLink } from '#loyalty/accounts/contact-details.js';
import type { ContactDetails } from '#loyalty/accounts/account.events.js';
import type { IllustratedMail, MailPicture } from './mail.js';
import { createMailColors, type MailColors } from './mail-colors.js';

/** An e-mail of a store to a customer. Texts that name the store get its name. */
export type StoreMail = {
  lang: string;
  /** On one line. */
  store: string;
  contact: ContactDetails;
  /** The colour of the card, as `#RRGGBB`. */
  accent: string;
  /** Null: they could not be drawn. */
  pictures: { logo: MailPicture | null; strip: MailPicture } | null;
  subject: string;
  /** What the picture shows. */
  summary: { name: string; text: string };
  title: (values: { store: string }) => string;
  /** Above the button. */
  opening?: string[];
  button: { text: string; link: string };
  paragraphs: string[];
  /** Says why the person gets the e-mail. */
  why: (values: { store: string }) => string;
  /** A page that stops such e-mails. */
  stop?: { text: string; link: string };
};

type ContactLine = { text: string; href: string | null };

type MailView = Pick<
  StoreMail,
  'lang' | 'store' | 'subject' | 'summary' | 'button' | 'paragraphs'
> & {
  opening: string[];
  stop: { text: string; link: string } | null;
  colors: MailColors;
  /** HTML in which the name of the store keeps its own direction. */
  title: string;
  why: string;
  logo: string | null;
  strip: string | null;
  address: string[];
  contact: ContactLine[];
};

/**
 * Renders HTML that all mail programs understand: tables, and inline styles for those that drop the style sheet. That one
 * has the colours for the dark.
 */
const mailView = loadTemplate<MailView>(import.meta.url, './views/store-mail.eta');

/** Stands for the name of the store in a text. No text contains it. */
const PLACEHOLDER = '\u0000';

/** Renders an e-mail as text, and as HTML with the same text, pictures and a button. */
export function renderStoreMail(mail: StoreMail): Omit<IllustratedMail, 'to'> {
  const { lang, store, subject, summary, button, paragraphs, pictures, opening = [] } = mail;
  const address = listAddressLines(mail.contact);
  const contact = listContactLines(mail.contact);
  const text = [
    mail.title({ store }),
    ...opening,
    `${summary.name}, ${summary.text}`,
    button.link,
    ...paragraphs,
    mail.why({ store }),
    ...(mail.stop ? [`${mail.stop.text}: ${mail.stop.link}`] : []),
    listFootLines(mail).join('\n'),
  ];
  return {
    fromName: store,
    subject,
    text: `${text.join('\n\n')}\n`,
    html: mailView({
      lang,
      store,
      subject,
      summary,
      button,
      paragraphs,
      opening,
      stop: mail.stop ?? null,
      colors: createMailColors(mail.accent),
      title: isolateName(mail.title, store),
      why: isolateName(mail.why, store),
      logo: pictures?.logo?.cid ?? null,
      strip: pictures?.strip.cid ?? null,
      address,
      contact,
    }),
    pictures:
      pictures === null ? [] : [pictures.logo, pictures.strip].filter((image) => image !== null),
  };
}

/** Lists the lines at the end of an e-mail: the name of the store, and how to reach it. */
export function listFootLines({ store, contact }: Pick<StoreMail, 'store' | 'contact'>): string[] {
  return [
    store,
    ...listAddressLines(contact),
    ...listContactLines(contact).map(({ text }) => text),
  ];
}

function listAddressLines({ address }: ContactDetails): string[] {
  return (address ?? '').split('\n').filter((line) => line.trim() !== '');
}

/** Lists how to reach the store, with what a tap on each opens. */
function listContactLines({ phone, email, website }: ContactDetails): ContactLine[] {
  return [
    ...(phone === null ? [] : [{ text: phone, href: toPhoneLink(phone) }]),
    ...(email === null ? [] : [{ text: email, href: `mailto:${email}` }]),
    ...(website === null ? [] : [{ text: website, href: website }]),
  ];
}

/** Renders a text as HTML. An Arabic name does not turn the rest of the sentence around. */
function isolateName(text: StoreMail['title'], store: string): string {
  return escapeHtml(text({ store: PLACEHOLDER })).replaceAll(
    PLACEHOLDER,
    () => `<bdi>${escapeHtml(store)}</bdi>`,
  );
}
