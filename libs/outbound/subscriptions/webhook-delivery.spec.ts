import { describe, expect, it } from '@jest/globals';
import { getError, isSuccess, type Outcome } from '#outbound/sending/outcome.js';
import {
  decideAfterAttempt,
  decideAfterManualAttempt,
  endsSubscription,
  getGiveUpBefore,
  MAX_ATTEMPTS,
} from './webhook-delivery.js';

const NOW = new Date('2026-03-01T12:00:00.000Z');
const secondsAgo = (seconds: number) => new Date(NOW.getTime() - seconds * 1000);
const response = (status: number, retryAfter: string | null = null): Outcome => ({
  kind: 'responded',
  status,
  retryAfter,
});
const TIMED_OUT: Outcome = {
  kind: 'failed',
  cause: 'timeout',
  error: 'No response within 10 seconds',
};

type Options = {
  tries?: number;
  elapsed?: number;
  failingFor?: number;
  random?: number;
  timeScale?: number;
};

function after(outcome: Outcome, options: Options = {}) {
  const { tries = 0, elapsed = 0, failingFor, random = 0, timeScale = 1 } = options;
  return decideAfterAttempt(
    { tries, firstAttemptAt: tries === 0 ? null : secondsAgo(elapsed) },
    { failingSince: failingFor === undefined ? null : secondsAgo(failingFor) },
    outcome,
    NOW,
    random,
    timeScale,
  );
}

function delayAfter(outcome: Outcome, options: Options = {}): number {
  const { delivery } = after(outcome, options);
  if (delivery.status !== 'pending') throw new Error(`expected a retry, got ${delivery.status}`);
  return (delivery.nextAttemptAt.getTime() - NOW.getTime()) / 1000;
}

describe('the retry schedule', () => {
  it.each([
    [1, 5, 4.5],
    [2, 30, 27],
    [3, 120, 108],
    [4, 300, 270],
    [5, 600, 540],
    [6, 1200, 1080],
    [7, 2400, 2160],
    [8, 3600, 3240],
    [9, 6000, 5400],
  ])('waits after attempt %i for %i s, or down to %i s by jitter', (attempt, longest, shortest) => {
    const tries = attempt - 1;
    expect(delayAfter(TIMED_OUT, { tries })).toBe(longest);
    expect(delayAfter(TIMED_OUT, { tries, random: 0.9999999 })).toBeCloseTo(shortest, 2);
  });

  it('gives up after the tenth attempt, in under four hours', () => {
    expect(MAX_ATTEMPTS).toBe(10);
    expect(after(TIMED_OUT, { tries: 9 }).delivery).toEqual({ status: 'failed' });
    let total = 0;
    for (let tries = 0; tries < 9; tries++) {
      total += 10 + delayAfter(TIMED_OUT, { tries });
    }
    expect(total).toBeLessThan(4 * 3600);
  });

  it('divides every wait by the time scale', () => {
    expect(delayAfter(TIMED_OUT, { tries: 3, timeScale: 100 })).toBe(3);
    expect(delayAfter(response(503, '400'), { tries: 3, timeScale: 100 })).toBe(4);
  });
});

describe('Retry-After', () => {
  it.each([
    ['lengthens the delay of a 429', response(429, '40'), { tries: 1 }, 40],
    ['lengthens the delay of a 503', response(503, '40'), { tries: 1 }, 40],
    [
      'lengthens the delay to at most twice the scheduled one',
      response(429, '3600'),
      { tries: 1 },
      60,
    ],
    ['never shortens the delay', response(429, '1'), { tries: 1 }, 30],
    ['is read without surrounding spaces', response(503, ' 40 '), { tries: 1 }, 40],
    ['is read as a date', response(503, 'Sun, 01 Mar 2026 12:00:50 GMT'), { tries: 1 }, 50],
    ['is ignored when it is in the past', response(503, 'Sun, 01 Mar 2026 11:00:00 GMT'), {}, 5],
    ['is ignored when it cannot be parsed', response(503, 'soon'), {}, 5],
    ['is ignored when it is negative', response(503, '-7'), {}, 5],
    ['is ignored with any other status', response(500, '40'), { tries: 1 }, 30],
  ] as const)('%s', (_rule, outcome, options, seconds) => {
    expect(delayAfter(outcome, options)).toBe(seconds);
  });

  it('never moves the last attempt beyond four hours after the first', () => {
    // 4 h less the 7,600 s gone and the 10 s of the last attempt leaves 6,790 s, although twice the enqueued delay is
    // 12,000.
    const options = { tries: 8, elapsed: 7600 };
    expect(delayAfter(response(429, '9000'), options)).toBe(6790);
    const scaled = { tries: 8, elapsed: 76, timeScale: 100 };
    expect(delayAfter(response(429, '9000'), scaled)).toBe(67.9);
    let clock = 0;
    for (let tries = 0; tries < 9; tries++) {
      clock += 10;
      clock += delayAfter(response(429, '99999'), { tries, elapsed: clock });
    }
    expect(clock).toBeLessThanOrEqual(4 * 3600);
  });
});

describe('decideAfterAttempt', () => {
  const THREE_DAYS = 3 * 24 * 3600;
  it.each([
    ['a 200', response(200), {}, 'delivered', { isKept: true, failingSince: null }],
    [
      'a 299 that ends a failing period',
      response(299),
      { failingFor: 60 },
      'delivered',
      { isKept: true, failingSince: null },
    ],
    ['a 301', response(301), {}, 'pending', { isKept: true, failingSince: NOW }],
    ['a 400', response(400), {}, 'pending', { isKept: true, failingSince: NOW }],
    [
      'a failure after others',
      response(500),
      { failingFor: 60 },
      'pending',
      { isKept: true, failingSince: secondsAgo(60) },
    ],
    ['a 410', response(410), {}, 'cancelled', { isKept: false }],
    [
      'a failure just before three days',
      TIMED_OUT,
      { failingFor: THREE_DAYS - 1 },
      'pending',
      { isKept: true, failingSince: secondsAgo(THREE_DAYS - 1) },
    ],
    [
      'a failure after three days',
      TIMED_OUT,
      { failingFor: THREE_DAYS },
      'failed',
      { isKept: true, disabled: 'failing', failingSince: secondsAgo(THREE_DAYS) },
    ],
    [
      'a failure after three days at a time scale of 100',
      TIMED_OUT,
      { failingFor: THREE_DAYS / 100, timeScale: 100 },
      'failed',
      { isKept: true, disabled: 'failing', failingSince: secondsAgo(THREE_DAYS / 100) },
    ],
    [
      'a success after three days',
      response(204),
      { failingFor: THREE_DAYS },
      'delivered',
      {
        isKept: true,
        failingSince: null,
      },
    ],
    [
      'a blocked address',
      { kind: 'blocked' },
      {},
      'failed',
      {
        isKept: true,
        disabled: 'blocked_address',
        failingSince: NOW,
      },
    ],
    [
      'an event whose day was dropped',
      { kind: 'missing' },
      { failingFor: THREE_DAYS },
      'failed',
      { isKept: true, failingSince: secondsAgo(THREE_DAYS) },
    ],
    [
      'an event that cannot be rendered',
      { kind: 'unrendered' },
      {},
      'pending',
      { isKept: true, failingSince: null },
    ],
    [
      'the last attempt at an event that cannot be rendered',
      { kind: 'unrendered' },
      { tries: MAX_ATTEMPTS - 1 },
      'failed',
      { isKept: true, failingSince: null },
    ],
  ] as const)(
    'sets the delivery and the subscription after %s',
    (_case, outcome, options, status, subscription) => {
      const next = after(outcome, options);
      expect(next.delivery.status).toBe(status);
      expect(next.subscription).toEqual(subscription);
    },
  );
});

it('endsSubscription is true when the subscription is deleted or disabled', () => {
  const failingSince = NOW;
  expect(endsSubscription({ isKept: false })).toBe(true);
  expect(endsSubscription({ isKept: true, disabled: 'failing', failingSince })).toBe(true);
  expect(endsSubscription({ isKept: true, disabled: 'blocked_address', failingSince })).toBe(true);
  expect(endsSubscription({ isKept: true, failingSince })).toBe(false);
  expect(endsSubscription({ isKept: true, failingSince: null })).toBe(false);
});

it('getError says why an attempt failed, and isSuccess is true for 2xx only', () => {
  expect(getError(response(200))).toBeNull();
  expect(getError(response(302))).toBe('Responded with 302: redirects are not followed');
  expect(getError(response(500))).toBe('Responded with 500');
  expect(getError(TIMED_OUT)).toBe('No response within 10 seconds');
  expect(getError({ kind: 'blocked' })).toBe('The URL does not lead to a public address');
  expect(isSuccess(response(199))).toBe(false);
  expect(isSuccess(response(300))).toBe(false);
  expect(getError(response(300))).toBe('Responded with 300: redirects are not followed');
  expect(getError(response(399))).toBe('Responded with 399: redirects are not followed');
  expect(getError(response(400))).toBe('Responded with 400');
});

describe('decideAfterManualAttempt', () => {
  const keptSubscription = (failingSince: Date | null) => ({ isKept: true, failingSince });
  const FAILING = secondsAgo(600);
  it.each([
    [
      'delivers and ends the failing period after a success',
      response(204),
      FAILING,
      true,
      keptSubscription(null),
    ],
    ['changes nothing after a failure', response(500), FAILING, false, keptSubscription(FAILING)],
    ['begins no failing period after a failure', TIMED_OUT, null, false, keptSubscription(null)],
    ['deletes the subscription after a 410', response(410), null, false, { isKept: false }],
    [
      'disables the subscription after a blocked address',
      { kind: 'blocked' },
      null,
      false,
      { isKept: true, disabled: 'blocked_address', failingSince: NOW },
    ],
  ] as const)('%s', (_what, outcome, failingSince, delivered, subscription) => {
    expect(decideAfterManualAttempt(outcome, { failingSince }, NOW)).toEqual({
      delivered,
      subscription,
    });
  });
});

it.each([
  [1, 4 * 3600],
  [100, 144],
])('getGiveUpBefore returns at time scale %i the time %i s ago', (scale, seconds) => {
  expect(getGiveUpBefore(NOW, scale)).toEqual(secondsAgo(seconds));
});
