import { AsyncLocalStorage } from 'node:async_hooks';
import { clock } from '#platform/kernel/clock.js';

const times = new AsyncLocalStorage<number>();

/**
 * Lets work of this process happen in the past: for it, and for nothing beside it, the clock shows another time.
 * Commands decide, check limits and record by that time (ADR-0098).
 */
export function installPast(): <R>(at: number, work: () => Promise<R>) => Promise<R> {
  const getMs = clock.getMs.bind(clock);
  clock.getMs = () => times.getStore() ?? getMs();
  return (at, work) => times.run(at, work);
}
