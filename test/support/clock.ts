import { jest } from '@jest/globals';

/**
 * Runs a action with the clock of this process, which the service under test reads too, at a given time.
 * Only the time of day is set: timers run as ever. Use a store of its own inside, since windows of
 * others would end at another time than theirs.
 */
export async function atTime<T>(time: string, action: () => Promise<T>): Promise<T> {
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
