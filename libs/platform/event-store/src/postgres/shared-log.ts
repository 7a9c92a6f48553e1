import type { Position, StoredEvent } from '../port/event-store.js';
import { LogTail } from './log-tail.js';
import { isAfter } from '../port/position.js';

/** Long enough for a subscriber that gathers events before it asks for more. */
const MAX_IDLE_MS = 1_000;

type Read = (after: Position, limit: number) => Promise<StoredEvent[]>;

/**
 * Reads the log for all subscribers of a process: what one has read, the others need not read again. Whoever is far behind
 * reads alone.
 */
export class SharedLog {
  private readonly tail = new LogTail();
  private reading: { after: Position; events: Promise<StoredEvent[]> } | undefined;
  private addedAt = 0;
  /** The last read ended at its limit. */
  private isMore = false;

  /** @param readOn reads events after a position, in order, and none of which an earlier one is still to come */
  constructor(private readonly readOn: Read) {}

  /** Events after the position, as many as there are up to the limit; fewer while another subscriber reads the next. */
  async read(after: Position, limit: number): Promise<StoredEvent[]> {
    const cached = this.tail.covers(after) ? this.tail.getAfter(after, limit) : [];
    if (cached.length === limit || (cached.length > 0 && !this.isMore)) return cached;
    const next = await this.readTogether(cached.at(-1)?.position ?? after, limit - cached.length);
    return cached.length === 0 ? next : [...cached, ...next];
  }

  /** Something was recorded: what is being read may lack it, and whoever asks from now on must not share that. */
  announced(): void {
    this.reading = undefined;
  }

  private async readTogether(after: Position, limit: number): Promise<StoredEvent[]> {
    if (this.reading && isSame(this.reading.after, after)) {
      return (await this.reading.events).slice(0, limit);
    }
    const reading = { after, events: this.readOn(after, limit) };
    this.reading = reading;
    try {
      const events = await reading.events;
      this.keep(after, events, limit);
      return events;
    } finally {
      if (this.reading === reading) this.reading = undefined;
    }
  }

  private keep(after: Position, events: StoredEvent[], limit: number): void {
    const now = performance.now();
    const last = events.at(-1);
    if (!last) {
      if (now - this.addedAt > MAX_IDLE_MS) this.tail.clear();
      return;
    }
    if (!this.tail.isKnown || isAfter(after, this.tail.end)) this.tail.begin(after);
    else if (!isSame(after, this.tail.end)) return;
    this.tail.add(events, last.position);
    this.addedAt = now;
    this.isMore = events.length === limit;
  }
}

function isSame(one: Position, other: Position): boolean {
  return one.commit === other.commit && one.prepare === other.prepare;
}
