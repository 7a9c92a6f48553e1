import { describe, expect, it } from '@jest/globals';
import { getErrorMessage, getMessageWithCause } from './errors.js';

describe('the message of an error', () => {
  const refused = Object.assign(new Error('connect ECONNREFUSED ::1:6379'), {
    code: 'ECONNREFUSED',
  });

  it.each([
    [new Error('no such file'), 'no such file'],
    ['a text', 'a text'],
    [new AggregateError([refused, new Error('another')]), 'connect ECONNREFUSED ::1:6379'],
    [Object.assign(new Error(''), { code: 'ETIMEDOUT' }), 'ETIMEDOUT'],
    [new TypeError(''), 'TypeError'],
    [new AggregateError([]), 'AggregateError'],
  ])('is never empty: %#', (error, expected) => {
    expect(getErrorMessage(error)).toBe(expected);
  });

  it('has that of its cause, which is never empty either', () => {
    const cause = new AggregateError([refused]);
    expect(getMessageWithCause(new Error('cannot be reached', { cause }))).toBe(
      'cannot be reached (connect ECONNREFUSED ::1:6379)',
    );
    expect(getMessageWithCause(new Error('cannot be reached'))).toBe('cannot be reached');
  });
});
