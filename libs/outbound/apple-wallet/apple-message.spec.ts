import { expect, it } from '@jest/globals';
import { addMessage } from './apple-message.js';
import type { PassJson } from './pass-json.js';

const NEWS = {
  key: 'news',
  label: 'Latest news',
  value: 'You have 3 stamps.',
  changeMessage: '%@',
};
const PASS = { storeCard: { backFields: [NEWS] } } as unknown as PassJson;
const MESSAGE = {
  title: 'Closed on Monday',
  text: 'We are back on Tuesday.',
  tag: 7,
  at: '2026-07-01T22:30:00.000Z',
};
const PAGE = 'https://cards.example/passes/0a';
const STORE = { timeZone: 'Europe/Berlin', locale: 'de', addressForm: null, page: PAGE };

it('puts the message of the store first on the back, with its day, as the only field that notifies', () => {
  const { backFields } = addMessage(PASS, MESSAGE, { notificationTag: 6, ...STORE }).storeCard;
  expect(backFields).toEqual([
    {
      key: 'message',
      label: 'Closed on Monday',
      value: 'We are back on Tuesday.\n2. Juli 2026',
      changeMessage: '%@',
    },
    { key: 'news', label: 'Latest news', value: 'You have 3 stamps.' },
    { key: 'stop_messages', label: 'Nachrichten abbestellen', value: `${PAGE}/messages` },
  ]);
});

it('leaves the notification to a change that is later', () => {
  const { backFields } = addMessage(PASS, MESSAGE, { notificationTag: 8, ...STORE }).storeCard;
  expect(backFields[0]).not.toHaveProperty('changeMessage');
  expect(backFields[1]).toEqual(NEWS);
});

it('adds nothing to a pass that is no longer valid', () => {
  const pass: PassJson = { ...PASS, voided: true };
  expect(addMessage(pass, MESSAGE, { notificationTag: 6, ...STORE })).toBe(pass);
});
