import type { Position, StoredEvent } from '../port/event-store.js';
import { LogTail } from '../log/log-tail.js';
import { isAfter } from '../port/position.js';

/** Long enough for a subscriber that gathers events before it reads more. */
const MAX_IDLE_MS = 1_000;

type Read = (after: Position, limit: number) => Promise<StoredEvent[]>;

/** Reads the log once for all subscribers of a process. A subscriber that is far behind reads alone. */
export class SharedLog {
  private readonly tail = new LogTail();
  private reading: { after: Position; events: Promise<StoredEvent[]> } | undefined;
  private addedAt = 0;
  /** The last read ended at its limit. */
  private isMore = false;

  /** @param readOn reads events after a position, in order, without any that an earlier one could still precede */
  constructor(private readonly readOn: Read) {}

  /**
   * Reads events after the position, as many as there are up to the limit; fewer while another subscriber reads the
   * next.
   */
  async read(after: Position, limit: number): Promise<StoredEvent[]> {
    const cached = this.tail.covers(after) ? this.tail.getAfter(after, limit) : [];
    if (cached.length === limit || (cached.length > 0 && !this.isMore)) return cached;
    const next = await this.readTogether(cached.at(-1)?.position ?? after, limit - cached.length);
    return cached.length === 0 ? next : [...cached, ...next];
  }

  /**
   * Reports that something was recorded: the read in progress may lack it, so later readers must not share that read.
   */
  handleAnnouncement(): void {
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
