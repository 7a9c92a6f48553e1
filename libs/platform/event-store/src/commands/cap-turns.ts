import { UnavailableError } from '#kernel/errors.js';
import { TURN_WITHIN_MS } from './stream-queues.js';
import type { Cap } from '../port/event-store.js';

/**
 * Runs commits with the same cap one after another. In the database they wait for one lock, each on a connection of its
 * own: many at once would leave none for other work of the process.
 */
export class CapTurns {
  private readonly lastTurns = new Map<string, Promise<unknown>>();

  constructor(private readonly maxWaitMs = TURN_WITHIN_MS) {}

  /** @throws UnavailableError when the turn has not come within 6.5 s; nothing was done then */
  async run<R>(cap: Cap | undefined, work: () => Promise<R>): Promise<R> {
    if (!cap) return work();
    const name = `${cap.kind.table} ${cap.owner}`;
    let isLate = false;
    const turn = (this.lastTurns.get(name) ?? Promise.resolve()).then(() => {
      if (isLate) throw new UnavailableError('The database is too busy');
      clearTimeout(timer);
      return work();
    });
    const end = turn.catch(() => undefined);
    this.lastTurns.set(name, end);
    void end.then(() => {
      if (this.lastTurns.get(name) === end) this.lastTurns.delete(name);
    });
    let timer: NodeJS.Timeout | undefined;
    const refusal = new Promise<never>((_resolve, reject) => {
      timer = setTimeout(() => {
        isLate = true;
        reject(new UnavailableError('The database is too busy'));
      }, this.maxWaitMs);
    });
    return Promise.race([turn, refusal]);
  }
}
