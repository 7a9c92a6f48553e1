import { afterEach, expect, it, jest } from '@jest/globals';
import { UnavailableError } from '#kernel/errors.js';
import { retryUntilAvailable } from './retry-policy.js';

afterEach(() => {
  jest.restoreAllMocks();
});

it('retryUntilAvailable tries again after an UnavailableError until the work succeeds', async () => {
  let tries = 0;
  const work = () =>
    ++tries < 2 ? Promise.reject(new UnavailableError('busy')) : Promise.resolve('done');
  expect(await retryUntilAvailable(work)).toBe('done');
});

it('retryUntilAvailable gives up in time even when the clock is set back', async () => {
  const anHourAgo = Date.now() - 3_600_000;
  const work = () => {
    jest.spyOn(Date, 'now').mockReturnValue(anHourAgo);
    return Promise.reject(new UnavailableError('busy'));
  };
  await expect(retryUntilAvailable(work, 500)).rejects.toThrow('busy');
});

it('retryUntilAvailable rethrows any other error at once', async () => {
  let tries = 0;
  const work = () => Promise.reject(new Error(`broken ${++tries}`));
  await expect(retryUntilAvailable(work)).rejects.toThrow('broken 1');
});
