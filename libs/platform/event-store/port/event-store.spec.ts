import { expect, it } from '@jest/globals';
import { getMessageWithCause } from '#platform/kernel/errors.js';
import { KeyTakenOverError } from './event-store.js';

it('KeyTakenOverError tells the log that another request has taken over', () => {
  expect(getMessageWithCause(new KeyTakenOverError(['a']))).toMatch(/another request has taken/);
});
