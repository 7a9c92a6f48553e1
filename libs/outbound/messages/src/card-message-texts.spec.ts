import { describe, expect, it } from '@jest/globals';
import { renderCardMail, renderCardSms, toSingleLine } from './card-message-texts.js';
import { MAX_SMS_SEPTETS, countSeptets } from './gsm-7.js';
import { LANGUAGES } from './translations.js';

const LINK = 'https://cards.bakery.example/passes/0f0e0d0c-0b0a-4908-8706-050403020100';
const locales = Object.keys(LANGUAGES);
const of = (locale: string, store = 'Bäckerei „Süß & Söhne“') => ({ store, locale, link: LINK });

/** What a link program would make a link of. */
const urlsIn = (text: string) => text.match(/[a-z]+:\/\/[^\s"<]+|mailto:[^\s"<]+/gi) ?? [];

describe.each(locales)('the mail in %s', (locale) => {
  const mail = renderCardMail(of(locale));

  it('is in the store’s name', () => {
    expect(mail.fromName).toBe('Bäckerei „Süß & Söhne“');
    expect(mail.subject).toContain('Bäckerei „Süß & Söhne“');
    expect(mail.text).toContain('Bäckerei „Süß & Söhne“');
    expect(mail.html).toContain('Bäckerei „Süß &amp; Söhne“');
  });

  it('has the link of the card and no other, no picture and nothing to load', () => {
    expect(new Set(urlsIn(mail.text))).toEqual(new Set([LINK]));
    expect(new Set(urlsIn(mail.html ?? ''))).toEqual(new Set([LINK]));
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

it('the languages differ from each other in every sentence', () => {
  const sentences = locales.flatMap((locale) => {
    const { intro, advice, why, open, subject } = LANGUAGES[locale as keyof typeof LANGUAGES];
    return [intro('S'), advice, why('S'), open, subject('S')];
  });
  expect(new Set(sentences).size).toBe(5 * locales.length);
});

it('a language without texts gets English', () => {
  expect(renderCardMail(of('ja-JP')).text).toBe(renderCardMail(of('en')).text);
  expect(renderCardMail(of('ja-JP')).html).toContain('lang="en"');
  expect(renderCardMail(of('de-AT')).text).toBe(renderCardMail(of('de')).text);
});

describe('a store name', () => {
  it('stays in one line, without what turns the direction of the text', () => {
    const name = 'Café\r\nBcc: all@x.example\u0000 "1" \u202eevil\u2028 ';
    expect(toSingleLine(name)).toBe('Café Bcc: all@x.example "1" evil');
    const { subject, fromName } = renderCardMail(of('en', name));
    expect(`${subject}${fromName}`).not.toMatch(/[\p{Cc}\u202e\u2028]/u);
    expect(renderCardSms(of('en', name))).not.toMatch(/[\r\n]/);
  });

  it('is text in the HTML, whatever it holds', () => {
    const { html } = renderCardMail(of('en', '<a href="https://x.example">"Bob\'s"</a>'));
    expect(html).not.toContain('<a href="https://x.example"');
    expect(html).toContain('&lt;a href=&quot;https://x.example&quot;&gt;&quot;Bob&#39;s&quot;');
  });
});

describe.each(locales)('the SMS in %s', (locale) => {
  it('is one segment of GSM-7, with the store and the link', () => {
    const text = renderCardSms(of(locale, 'Crêperie l’Étoile – Genève'));
    expect(countSeptets(text)).toBeLessThanOrEqual(MAX_SMS_SEPTETS);
    expect(text).toContain("Creperie l'Étoile - Genève");
    expect(text.endsWith(LINK)).toBe(true);
  });

  it('shortens a long name rather than going on in a second segment', () => {
    const text = renderCardSms(
      of(locale, 'The Very Long Name of a Bakery that Nobody Can Remember'.repeat(3)),
    );
    expect(countSeptets(text)).toBeLessThanOrEqual(MAX_SMS_SEPTETS);
    expect(text).toContain('The Very Long');
    expect(text).toContain('...');
    expect(text.endsWith(LINK)).toBe(true);
  });
});

it('an SMS keeps a name in another script whole', () => {
  const text = renderCardSms(of('en', 'Пекарня'));
  expect(countSeptets(text)).toBeUndefined();
  expect(text).toContain('Пекарня');
  expect(text.endsWith(LINK)).toBe(true);
});

it('an SMS with a link too long for one segment still has all of it', () => {
  const link = `https://${'cards.'.repeat(20)}example/passes/0f0e0d0c-0b0a-4908-8706-050403020100`;
  expect(renderCardSms({ store: 'Corner Café', locale: 'en', link })).toBe(
    `Your stamp card from Corner Café: ${link}`,
  );
});
