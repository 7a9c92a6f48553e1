import type { Pace } from './delivery-lane.js';

/**
 * How many attempts a process makes at once, by pace, so that slow or unavailable receivers cannot use up the slots of
 * the others. Times are milliseconds on one clock.
 */

const SLOTS: Record<Pace, number> = { fast: 768, slow: 192, probe: 64 };
/** After this long an attempt of a fast lane counts as a slow one. */
export const SLOW_MS = 2_000;
/**
 * No attempt begins while this many results are not recorded yet, because a process that is killed repeats those
 * attempts.
 */
export const MOST_UNRECORDED = 2_048;
/** With quick receivers this many attempts at once already keep a process busy; only slow receivers need more. */
const MANY = 256;
/** Above these shares of busy time more attempts at once would not be faster: with few in flight, and with many. */
const BUSY = { few: 0.85, many: 0.5 };

export type Slot = { pace: Pace; readonly since: number };

export class AttemptSlots {
  private readonly used: Record<Pace, number> = { fast: 0, slow: 0, probe: 0 };
  /** In the order in which they began. */
  private readonly slots = new Set<Slot>();
  private made = 0;

  get taken(): Readonly<Record<Pace, number>> {
    return this.used;
  }

  get inFlight(): number {
    return this.slots.size;
  }

  /** Attempts that were made but are not recorded yet. */
  get unrecorded(): number {
    return this.made;
  }

  get mayBegin(): boolean {
    return this.made < MOST_UNRECORDED;
  }

  isFree(pace: Pace): boolean {
    return this.used[pace] < SLOTS[pace];
  }

  begin(pace: Pace, now: number): Slot {
    const slot = { pace, since: now };
    this.used[pace]++;
    this.slots.add(slot);
    return slot;
  }

  /** @param made whether an attempt was made that has to be recorded */
  end(slot: Slot, made: boolean): void {
    this.slots.delete(slot);
    this.used[slot.pace]--;
    if (made) this.made++;
  }

  /** @returns whether attempts may begin again that had to wait before */
  recorded(): boolean {
    return this.made-- === MOST_UNRECORDED;
  }

  /** Moves long-running attempts of fast lanes to the slow slots, which frees fast ones. */
  slowDown(now: number): void {
    for (const slot of this.slots) {
      if (now - slot.since < SLOW_MS) break;
      if (slot.pace !== 'fast') continue;
      this.used.fast--;
      this.used.slow++;
      slot.pace = 'slow';
    }
  }

  /** @param busyShare how much of its time the process was busy, from 0 to 1 */
  mayGrow(busyShare: number): boolean {
    return busyShare < (this.slots.size < MANY ? BUSY.few : BUSY.many);
  }
}
