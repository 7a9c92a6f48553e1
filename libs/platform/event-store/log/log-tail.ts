import type { StoredEvent } from '../port/event-store.js';
import { isAfter, type Position } from '../port/position.js';

/** A subscriber that is further behind than this reads the log alone. */
const MAX_EVENTS = 2_000;

/** Caches the newest events of the log, for all subscribers of a process. */
export class LogTail {
  private events: StoredEvent[] = [];
  /** Every event after this one and up to `end` is here; undefined: nothing is. */
  private beginning: Position | undefined;
  private endPosition: Position | undefined;
  private readonly waiting = new Set<() => void>();

  get isKnown(): boolean {
    return this.endPosition !== undefined;
  }

  get end(): Position {
    if (!this.endPosition) throw new Error('the end of the log is not known yet');
    return this.endPosition;
  }

  begin(head: Position): void {
    this.clear();
    this.beginning = head;
    this.endPosition = head;
  }

  clear(): void {
    this.events = [];
    this.beginning = undefined;
    this.endPosition = undefined;
    this.wake();
  }

  /**
   * Adds events.
   * @param events the next events of the log
   * @param to the position up to which the log has been read with them
   */
  add(events: StoredEvent[], to: Position): void {
    this.events.push(...events);
    this.endPosition = to;
    const surplus = this.events.length - MAX_EVENTS;
    // Not one by one, because each removal copies all events that stay.
    if (surplus > MAX_EVENTS / 4) this.beginning = this.events.splice(0, surplus).at(-1)?.position;
    this.wake();
  }

  /** Tells whether all events after the position are here. */
  covers(position: Position): boolean {
    return this.beginning !== undefined && !isAfter(this.beginning, position);
  }

  getAfter(position: Position, limit: number): StoredEvent[] {
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
  waitForChange(signal: AbortSignal): Promise<void> {
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
