import { expect, it } from '@jest/globals';
import { WakeSignal } from './wake-signal.js';

const LONG_MS = 60_000;
const running = new AbortController().signal;

it('ends a wait when it is woken', async () => {
  const signal = new WakeSignal();
  const waiting = signal.wait(LONG_MS, running);
  signal.wake();
  expect(await waiting).toBe(true);
});

it('does not wait when it was woken before, and then waits again', async () => {
  const signal = new WakeSignal();
  signal.wake();
  signal.wake();
  await signal.wait(LONG_MS, running);
  let isOver = false;
  const waiting = signal.wait(LONG_MS, running).then(() => (isOver = true));
  await Promise.resolve();
  expect(isOver).toBe(false);
  signal.wake();
  await waiting;
});

it('wakes after a delay, and never before its end', async () => {
  const signal = new WakeSignal();
  for (let i = 0; i < 20; i++) {
    const startedAt = performance.now();
    signal.wakeIn(1.99);
    expect(await signal.wait(LONG_MS, running)).toBe(true);
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(1.99);
  }
});

it('ends a wait when the time is over or the signal aborts', async () => {
  const signal = new WakeSignal();
  expect(await signal.wait(1, running)).toBe(false);
  const stopping = new AbortController();
  const waiting = signal.wait(LONG_MS, stopping.signal);
  stopping.abort();
  await waiting;
  await signal.wait(LONG_MS, stopping.signal);
  expect(stopping.signal.aborted).toBe(true);
});
