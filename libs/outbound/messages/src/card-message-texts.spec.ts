import { describe, expect, it } from '@jest/globals';
import { getTranslations, LANGUAGE_CODES as locales } from '#translations/translations.js';
import { renderCardMail, renderCardSms, toSingleLine } from './card-message-texts.js';
import { MAX_SMS_SEPTETS, countSeptets } from './gsm-7.js';

const LINK = 'https://cards.bakery.example/passes/0f0e0d0c-0b0a-4908-8706-050403020100';
const createContext = (locale: string, store = 'Bäckerei „Süß & Söhne“') => ({
  store,
  locale,
  link: LINK,
  logo: null,
});

/** Finds what a mail program would turn into a link. */
const findUrls = (text: string) => text.match(/[a-z]+:\/\/[^\s"<]+|mailto:[^\s"<]+/gi) ?? [];

describe.each(locales)('the mail in %s', (locale) => {
  const mail = renderCardMail(createContext(locale));

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
  });

  it('says the same as text and as HTML', () => {
    const visibleText = (mail.html ?? '')
      .replaceAll(/<head>[\s\S]*<\/head>|<[^>]+>/g, ' ')
      .replaceAll('&amp;', '&')
      .replaceAll('&#39;', "'")
      .replaceAll('&quot;', '"');
    for (const paragraph of mail.text.trim().split('\n\n'))
      expect(visibleText).toContain(paragraph);
    expect(mail.html).toContain(`lang="${locale}"`);
  });
});

it('every sentence differs in every language', () => {
  const sentences = locales.flatMap((locale) => {
    const { intro, advice, why, open, subject } = getTranslations(locale).t.cardMessage;
    return [intro('S'), advice, why('S'), open, subject('S')];
  });
  expect(new Set(sentences).size).toBe(5 * locales.length);
});

it('renderCardMail uses the texts of the language without its region, or English', () => {
  expect(renderCardMail(createContext('ja-JP')).text).toBe(
    renderCardMail(createContext('en')).text,
  );
  expect(renderCardMail(createContext('ja-JP')).html).toContain('lang="en"');
  expect(renderCardMail(createContext('de-AT')).text).toBe(
    renderCardMail(createContext('de')).text,
  );
});

describe('a store name', () => {
  it('is kept on one line, without characters that change the text direction', () => {
    const name = 'Café\r\nBcc: all@x.example\u0000 "1" \u202eevil\u2028 ';
    expect(toSingleLine(name)).toBe('Café Bcc: all@x.example "1" evil');
    const { subject, fromName } = renderCardMail(createContext('en', name));
    expect(`${subject}${fromName}`).not.toMatch(/[\p{Cc}\u202e\u2028]/u);
    expect(renderCardSms(createContext('en', name))).not.toMatch(/[\r\n]/);
  });

  it('is escaped in the HTML', () => {
    const { html } = renderCardMail(
      createContext('en', '<a href="https://x.example">"Bob\'s"</a>'),
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
  expect(renderCardSms({ store: 'Corner Café', locale: 'en', link, logo: null })).toBe(
    `Your stamp card from Corner Café: ${link}`,
  );
});
