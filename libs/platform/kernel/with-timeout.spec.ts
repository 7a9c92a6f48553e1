import { describe, expect, it } from '@jest/globals';
import { withTimeout } from './with-timeout.js';

describe('withTimeout', () => {
  it('passes results and errors on that come in time', async () => {
    expect(await withTimeout(Promise.resolve(7), 60_000)).toBe(7);
    await expect(withTimeout(Promise.reject(new Error('no')), 60_000)).rejects.toThrow('no');
  });

  it('rejects when the time is over, and ignores what comes later', async () => {
    let fail = () => undefined as void;
    const work = new Promise<never>((_, reject) => {
      fail = () => reject(new Error('late'));
    });
    await expect(withTimeout(work, 1)).rejects.toThrow('no response within 1 ms');
    const createError = () => new TypeError('too late');
    await expect(withTimeout(work, 1, createError)).rejects.toThrow(createError());
    fail();
    // An error that nobody catches would end this process.
    await new Promise(setImmediate);
  });
});
