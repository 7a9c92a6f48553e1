import { describe, expect, it } from '@jest/globals';
import type { AddressForm } from '#translations/address-form.js';
import { getTranslations, LANGUAGE_CODES as locales } from '#translations/translations.js';
import {
  renderCardMail,
  renderCardSms,
  toSingleLine,
  type CardMessageContent,
} from './card-message-texts.js';
import { MAX_SMS_SEPTETS, countSeptets } from './gsm-7.js';

const LINK = 'https://cards.bakery.example/passes/0f0e0d0c-0b0a-4908-8706-050403020100';
const createContext = (
  locale: string,
  store = 'Bäckerei „Süß & Söhne“',
  changes: Partial<CardMessageContent> = {},
): CardMessageContent => ({
  store,
  locale,
  addressForm: null,
  contact: { website: null, phone: null, email: null, address: null, termsText: null },
  link: LINK,
  card: { name: 'Café & mehr', color: '#6B4226', stampsCount: 3, stampsRequired: 10 },
  ...changes,
});
const PNG = Buffer.from('png');
const PICTURES = { logo: { cid: 'logo', png: PNG }, strip: { cid: 'card', png: PNG } };
const CONTACT = {
  website: 'https://bakery.example/',
  phone: '+49 721 123456',
  email: 'hello@bakery.example',
  address: 'Main Street 1\n76133 Karlsruhe',
  termsText: 'One stamp for each loaf.',
};

/** Finds what a mail program would turn into a link. */
const findUrls = (text: string) => text.match(/[a-z]+:\/\/[^\s"<]+|mailto:[^\s"<]+/gi) ?? [];

describe.each(locales)('the mail in %s', (locale) => {
  const mail = renderCardMail(createContext(locale), null);

  it('names the store as the sender, in the subject and in the text', () => {
    expect(mail.fromName).toBe('Bäckerei „Süß & Söhne“');
    expect(mail.subject).toContain('Bäckerei „Süß & Söhne“');
    expect(mail.text).toContain('Bäckerei „Süß & Söhne“');
    expect(mail.html).toContain('Bäckerei „Süß &amp; Söhne“');
  });

  it('contains no link but the one to the card, and loads nothing', () => {
    expect(new Set(findUrls(mail.text))).toEqual(new Set([LINK]));
    expect(new Set(findUrls(mail.html ?? ''))).toEqual(new Set([LINK]));
    expect(mail.html).not.toMatch(/<(img|link|script|iframe)|url\(|src=/i);
    expect(mail.pictures).toEqual([]);
  });

  it('shows pictures that it brings itself, with what they show as text', () => {
    const { html = '', pictures } = renderCardMail(createContext(locale), PICTURES);
    expect(html.match(/src="[^"]*"/g)).toEqual(['src="cid:logo"', 'src="cid:card"']);
    expect(html).toMatch(/alt="Café &amp; mehr, [^"]*3[^"]*10[^"]*"/);
    expect(pictures).toEqual([PICTURES.logo, PICTURES.strip]);
    const plain = renderCardMail(createContext(locale), { ...PICTURES, logo: null });
    expect(plain.pictures).toEqual([PICTURES.strip]);
    expect(plain.html).not.toContain('cid:logo');
  });

  it('ends with how to reach the store', () => {
    const { text, html } = renderCardMail(
      createContext(locale, 'Le Four', { contact: CONTACT }),
      null,
    );
    expect(text).toMatch(
      /\n\nLe Four\nMain Street 1\n76133 Karlsruhe\n[+]49 721 123456\nhello@bakery.example\nhttps:..bakery.example.\n$/,
    );
    expect(html).toContain('href="tel:+49721123456"');
    expect(html).toContain('href="mailto:hello@bakery.example"');
    expect(html).toContain('href="https://bakery.example/"');
    expect(`${text}${html}`).not.toContain('One stamp for each loaf');
  });

  it('has no text outside its colours', () => {
    const { html = '' } = renderCardMail(
      createContext(locale, 'S', { contact: CONTACT }),
      PICTURES,
    );
    const body = html.slice(html.indexOf('<body'));
    for (const [tag] of body.matchAll(/<(?:p|h1|a)\b[^>]*>/g)) {
      expect(tag).toMatch(/style="[^"]*color:#[0-9A-F]{6}/);
    }
    expect(body).toMatch(/<body[^>]*background:#[0-9A-F]{6}/);
  });

  it('says the same as text and as HTML', () => {
    const visibleText = (mail.html ?? '')
      .replaceAll(/<[/]?bdi>/g, '')
      .replaceAll(/<head>[\s\S]*<\/head>|<[^>]+>/g, ' ')
      .replaceAll('&amp;', '&')
      .replaceAll('&#39;', "'")
      .replaceAll('&quot;', '"');
    for (const line of mail.text.trim().split(/\n+/)) expect(visibleText).toContain(line);
    expect(mail.html).toContain(`lang="${locale}"`);
  });
});

it('every sentence differs in every language', () => {
  const sentences = locales.flatMap((locale) => {
    const { intro, advice, why, open, subject } = getTranslations(locale).t.cardMessage;
    return [intro({ store: 'S' }), advice, why({ store: 'S' }), open, subject({ store: 'S' })];
  });
  expect(new Set(sentences).size).toBe(5 * locales.length);
});

it('addresses customers as the store wishes', () => {
  const render = (locale: string, addressForm: AddressForm) => {
    const content = createContext(locale, 'Le Four', { addressForm });
    return `${renderCardMail(content, null).text}${renderCardSms(content)}`;
  };
  expect(render('de', 'formal')).toMatch(/Ihre Stempelkarte von Le Four: https/);
  expect(render('de', 'informal')).toMatch(/Deine Stempelkarte von Le Four: https/);
  expect(render('fr-CA', 'informal')).toMatch(/Ta carte de fidélité Le Four : https/);
  expect(render('es', 'informal')).toMatch(/Tu tarjeta de sellos de Le Four: https/);
  expect(render('en', 'formal')).toBe(render('en', 'informal'));
});

it('lets a name in another direction turn nothing else around', () => {
  const { html } = renderCardMail(createContext('de', 'مقهى الزاوية & Co'), null);
  expect(html).toContain('Stempelkarte von <bdi>مقهى الزاوية &amp; Co</bdi>.');
});

it('renderCardMail counts the stamps beyond a full card', () => {
  const card = { name: 'Coffee', color: '#6B4226', stampsCount: 13, stampsRequired: 10 };
  expect(renderCardMail(createContext('en', 'S', { card }), null).text).toContain(
    '\nCoffee, 13 stamps\n',
  );
});

it('renderCardMail uses the texts of the language without its region, or English', () => {
  expect(renderCardMail(createContext('ja-JP'), null).text).toBe(
    renderCardMail(createContext('en'), null).text,
  );
  expect(renderCardMail(createContext('ja-JP'), null).html).toContain('lang="en"');
  expect(renderCardMail(createContext('de-AT'), null).text).toBe(
    renderCardMail(createContext('de'), null).text,
  );
});

describe('a store name', () => {
  it('is kept on one line, without characters that change the text direction', () => {
    const name = 'Café\r\nBcc: all@x.example\u0000 "1" \u202eevil\u2028 ';
    expect(toSingleLine(name)).toBe('Café Bcc: all@x.example "1" evil');
    const { subject, fromName } = renderCardMail(createContext('en', name), null);
    expect(`${subject}${fromName}`).not.toMatch(/[\p{Cc}\u202e\u2028]/u);
    expect(renderCardSms(createContext('en', name))).not.toMatch(/[\r\n]/);
  });

  it('is escaped in the HTML', () => {
    const { html } = renderCardMail(
      createContext('en', '<a href="https://x.example">"Bob\'s"</a>'),
      null,
    );
    expect(html).not.toContain('<a href="https://x.example"');
    expect(html).toContain('&lt;a href=&quot;https://x.example&quot;&gt;&quot;Bob&#39;s&quot;');
  });
});

describe.each(locales)('the SMS in %s', (locale) => {
  it('fits into one GSM-7 segment with the store and the link', () => {
    const text = renderCardSms(createContext(locale, 'Crêperie l’Étoile – Genève'));
    expect(countSeptets(text)).toBeLessThanOrEqual(MAX_SMS_SEPTETS);
    expect(text).toContain("Creperie l'Étoile - Genève");
    expect(text.endsWith(LINK)).toBe(true);
  });

  it('shortens a long name to stay within one segment', () => {
    const text = renderCardSms(
      createContext(locale, 'The Very Long Name of a Bakery that Nobody Can Remember'.repeat(3)),
    );
    expect(countSeptets(text)).toBeLessThanOrEqual(MAX_SMS_SEPTETS);
    expect(text).toContain('The Very Long');
    expect(text).toContain('...');
    expect(text.endsWith(LINK)).toBe(true);
  });
});

it('renderCardSms keeps a name in another script', () => {
  const text = renderCardSms(createContext('en', 'Пекарня'));
  expect(countSeptets(text)).toBeUndefined();
  expect(text).toContain('Пекарня');
  expect(text.endsWith(LINK)).toBe(true);
});

it('renderCardSms keeps a link that is too long for one segment', () => {
  const link = `https://${'cards.'.repeat(20)}example/passes/0f0e0d0c-0b0a-4908-8706-050403020100`;
  expect(renderCardSms(createContext('en', 'Corner Café', { link }))).toBe(
    `Your stamp card from Corner Café: ${link}`,
  );
});
