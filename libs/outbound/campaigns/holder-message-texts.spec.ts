import { expect, it } from '@jest/globals';
import type { CardMessageContent } from '#outbound/messages/card-message-texts.js';
import { renderHolderMail, renderHolderSms } from './holder-message-texts.js';

const MESSAGE = { title: 'Closed on <b>Monday</b>', text: 'We are back\non Tuesday.' };
const CARD: CardMessageContent = {
  store: 'Corner\nCafé',
  locale: 'de-DE',
  addressForm: null,
  contact: { website: null, phone: '+49 721 1234', email: null, address: null, termsText: null },
  link: 'https://cards.example/passes/0a',
  card: { name: 'Coffee', color: '#FFD400', stampsCount: 3, stampsRequired: 10 },
};

it('renders a mail in the name of the store, which says why it came and how to stop it', () => {
  const mail = renderHolderMail(MESSAGE, CARD, null);
  expect(mail).toMatchObject({
    fromName: 'Corner Café',
    subject: 'Closed on <b>Monday</b>',
    unsubscribeUrl: 'https://cards.example/passes/0a/messages',
  });
  expect(mail.text).toContain('weil du eine Karte von Corner Café hast');
  expect(mail.text).toContain('https://cards.example/passes/0a/messages');
  expect(mail.html).toContain('Closed on &lt;b&gt;Monday&lt;/b&gt;');
  expect(mail.html).toContain('href="https://cards.example/passes/0a/messages"');
});

it('renders it with the picture of the card and the contact of the store, in the form of the store', () => {
  const strip = { cid: 'card', png: Buffer.from('png') };
  const formal = { ...CARD, addressForm: 'formal' as const };
  const { text, html, pictures } = renderHolderMail(MESSAGE, formal, { logo: null, strip });
  expect(pictures).toEqual([strip]);
  expect(html).toContain('alt="Coffee, 3 von 10 Stempeln"');
  expect(html).toContain('background: #FFD400');
  expect(html).toContain('href="tel:+497211234"');
  expect(text).toContain('weil Sie eine Karte von Corner Café haben');
  expect(text.indexOf('on Tuesday.')).toBeLessThan(text.indexOf(CARD.link));
});

it('renders an SMS in one line, with the page that stops messages', () => {
  expect(renderHolderSms(MESSAGE, CARD)).toBe(
    'Corner Café: We are back on Tuesday. Karte und Abbestellen: https://cards.example/passes/0a/messages',
  );
});
