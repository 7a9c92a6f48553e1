import { expect, it } from '@jest/globals';
import { renderHolderMail, renderHolderSms, type HolderMessage } from './holder-message-texts.js';

const MESSAGE: HolderMessage = {
  title: 'Closed on <b>Monday</b>',
  text: 'We are back\non Tuesday.',
  store: 'Corner\nCafé',
  locale: 'de-DE',
  addressForm: null,
  link: 'https://cards.example/passes/0a',
  logo: null,
};

it('renders a mail in the name of the store, which says why it came and how to stop it', () => {
  const mail = renderHolderMail(MESSAGE);
  expect(mail).toMatchObject({
    fromName: 'Corner Café',
    subject: 'Closed on <b>Monday</b>',
    unsubscribeUrl: 'https://cards.example/passes/0a/messages',
  });
  expect(mail.text).toContain('weil du eine Karte von Corner Café hast');
  expect(mail.text).toContain('https://cards.example/passes/0a/messages');
  expect(renderHolderMail({ ...MESSAGE, addressForm: 'formal' }).text).toContain(
    'weil Sie eine Karte von Corner Café haben',
  );
  expect(mail.html).toContain('Closed on &lt;b&gt;Monday&lt;/b&gt;');
  expect(mail.html).toContain('href="https://cards.example/passes/0a/messages"');
});

it('renders an SMS in one line, with the page that stops messages', () => {
  expect(renderHolderSms(MESSAGE)).toBe(
    'Corner Café: We are back on Tuesday. Karte und Abbestellen: https://cards.example/passes/0a/messages',
  );
});
