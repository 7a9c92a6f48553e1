import { jest } from '@jest/globals';

/**
 * Runs an action with the clock of this process, which the service under test shares, set to a given time.
 * Timers are not affected. Use a separate store inside, since the rate-limit windows of others would end at
 * the wrong time.
 */
export async function runAtTime<T>(time: string, action: () => Promise<T>): Promise<T> {
  jest.useFakeTimers({
    now: Date.parse(time),
    doNotFake: [
      'hrtime',
      'nextTick',
      'performance',
      'queueMicrotask',
      'setImmediate',
      'clearImmediate',
      'setInterval',
      'clearInterval',
      'setTimeout',
      'clearTimeout',
    ],
  });
  try {
    return await action();
  } finally {
    jest.useRealTimers();
  }
}
