import { jest } from '@jest/globals';
import { clock } from '#platform/kernel/clock.js';

/**
 * Runs an action with the clocks of this process, which the service under test shares, set to a given time.
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
  const ofService = jest.spyOn(clock, 'getMs').mockReturnValue(Date.parse(time));
  try {
    return await action();
  } finally {
    ofService.mockRestore();
    jest.useRealTimers();
  }
}

/** Returns environment variables of a process whose clock is ahead of all others; behind them if negative. */
export function setClockAhead(ms: number): NodeJS.ProcessEnv {
  const hook = new URL('clock-ahead.mjs', import.meta.url).pathname;
  return { NODE_OPTIONS: `--import=${hook}`, CLOCK_AHEAD_MS: String(ms) };
}
