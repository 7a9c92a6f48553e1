import { afterEach, expect, it, jest } from '@jest/globals';
import { UnavailableError } from './errors.js';
import { RETRY, retryUntil, retryUntilAvailable } from './retry-until.js';

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

it('retryUntil repeats work until it has a result, even undefined', async () => {
  const results = [RETRY, RETRY, undefined];
  const work = () => Promise.resolve(results.shift() as undefined | typeof RETRY);
  const createError = () => new Error('too late');
  expect(await retryUntil({ withinMs: 5_000, delayMs: 1 }, work, createError)).toBeUndefined();
  expect(results).toEqual([]);
});

it('retryUntil waits no longer once its signal is aborted', async () => {
  const stopping = new AbortController();
  const work = jest.fn(() => {
    stopping.abort();
    return Promise.resolve(RETRY);
  });
  const options = { withinMs: 60_000, delayMs: 60_000, signal: stopping.signal };
  await expect(retryUntil(options, work, () => new Error('stopped'))).rejects.toThrow('stopped');
  expect(work).toHaveBeenCalledTimes(1);
});

it('retryUntil tries at least once, and throws the created error after the deadline', async () => {
  const work = jest.fn(() => Promise.reject<boolean>(new Error('busy')));
  const options = { withinMs: -1, delayMs: 1, isRetriable: () => true };
  const createError = (cause: unknown) => new Error('too late', { cause });
  await expect(retryUntil(options, work, createError)).rejects.toThrow('too late');
  expect(work).toHaveBeenCalledTimes(1);
});
