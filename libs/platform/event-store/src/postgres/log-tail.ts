import type { StoredEvent } from '../port/event-store.js';
import { isAfter, type Position } from '../port/position.js';

/** Whoever is further behind than this reads the log alone. */
const MOST_KEPT = 2_000;

/** The newest events of the log, for all subscribers of a process. */
export class LogTail {
  private events: StoredEvent[] = [];
  /** Every event after this one and up to `end` is here; undefined: nothing is. */
  private beginning: Position | undefined;
  private to: Position | undefined;
  private readonly waiting = new Set<() => void>();

  get isKnown(): boolean {
    return this.to !== undefined;
  }

  get end(): Position {
    if (!this.to) throw new Error('the end of the log is not known yet');
    return this.to;
  }

  begin(head: Position): void {
    this.clear();
    this.beginning = head;
    this.to = head;
  }

  clear(): void {
    this.events = [];
    this.beginning = undefined;
    this.to = undefined;
    this.wake();
  }

  /** @param events the next ones of the log @param to where the log has been read to with them */
  add(events: StoredEvent[], to: Position): void {
    this.events.push(...events);
    this.to = to;
    const surplus = this.events.length - MOST_KEPT;
    // Not one by one, since each time all that stay are copied.
    if (surplus > MOST_KEPT / 4) this.beginning = this.events.splice(0, surplus).at(-1)?.position;
    this.wake();
  }

  /** Whether all events after the position are here. */
  reaches(position: Position): boolean {
    return this.beginning !== undefined && !isAfter(this.beginning, position);
  }

  after(position: Position, limit: number): StoredEvent[] {
    let [low, high] = [0, this.events.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      const event = this.events[middle];
      if (event && isAfter(event.position, position)) high = middle;
      else low = middle + 1;
    }
    return this.events.slice(low, low + limit);
  }

  /** Resolves at the next change, or when the signal aborts. */
  changed(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        this.waiting.delete(done);
        signal.removeEventListener('abort', done);
        resolve();
      };
      this.waiting.add(done);
      signal.addEventListener('abort', done, { once: true });
    });
  }

  private wake(): void {
    for (const done of this.waiting) done();
  }
}
