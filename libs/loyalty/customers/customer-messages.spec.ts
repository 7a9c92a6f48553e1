import { expect, it } from '@jest/globals';
import { NotFoundError, RejectedError } from '#platform/kernel/errors.js';
import { recordMessage, rememberMessage, type SentMessage } from './customer-messages.js';

const MESSAGE: SentMessage = {
  messageId: 'a',
  announcementId: 1,
  ruleId: null,
  channel: 'email',
  personal: { title: 'Closed on Monday', text: 'We are back on Tuesday' },
};
const customer = (messageIds?: string[]) => ({
  id: 7,
  erasedAt: null,
  ...(messageIds && { messageIds }),
});

it('records a message once', () => {
  expect(recordMessage(customer(), MESSAGE)).toEqual([
    { type: 'CustomerMessaged', data: { customerId: 7, ...MESSAGE } },
  ]);
  expect(recordMessage(customer(['a', 'b']), MESSAGE)).toEqual([]);
});

it('remembers the last five messages', () => {
  const ids = ['a', 'b', 'c', 'd', 'e', 'f'];
  const state = ids.reduce(rememberMessage<{ messageIds?: string[] }>, {});
  expect(state.messageIds).toEqual(['b', 'c', 'd', 'e', 'f']);
});

it('refuses nobody, somebody erased, and somebody merged into another', () => {
  expect(() => recordMessage(undefined, MESSAGE)).toThrow(NotFoundError);
  const erased = { ...customer(), erasedAt: '2026-01-01T00:00:00.000Z' };
  expect(() => recordMessage(erased, MESSAGE)).toThrow(RejectedError);
  const merged = { ...customer(), mergedInto: { customerId: 8 } };
  expect(() => recordMessage(merged, MESSAGE)).toThrow(RejectedError);
});
