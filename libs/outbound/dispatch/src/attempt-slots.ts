import type { Pace } from './delivery-lane.js';

/**
 * How many attempts a process makes at once, by pace, so that receivers that are slow or unavailable cannot take
 * the place of the others. Times enter as milliseconds of one clock.
 */

const SLOTS: Record<Pace, number> = { fast: 768, slow: 192, probe: 64 };
/** From then on an attempt of a fast lane counts as a slow one. */
export const SLOW_MS = 2_000;
/** With so many attempts made and not recorded none is begun: a process that is killed repeats them. */
export const MOST_UNRECORDED = 2_048;
/** So many attempts at once keep a process busy with quick receivers; more are for slow ones. */
const MANY = 256;
/** Above these shares of its time more at once would not be faster: with few, and with many in flight. */
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

  /** Attempts made and not recorded. */
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

  /** @param made an attempt was made, which is to be recorded */
  end(slot: Slot, made: boolean): void {
    this.slots.delete(slot);
    this.used[slot.pace]--;
    if (made) this.made++;
  }

  /** @returns whether attempts may begin again that could not before */
  recorded(): boolean {
    return this.made-- === MOST_UNRECORDED;
  }

  /** Attempts of fast lanes that have taken long make room for others. */
  slowDown(now: number): void {
    for (const slot of this.slots) {
      if (now - slot.since < SLOW_MS) break;
      if (slot.pace !== 'fast') continue;
      this.used.fast--;
      this.used.slow++;
      slot.pace = 'slow';
    }
  }

  /** @param busyShare of its time that the process was busy, from 0 to 1 */
  mayGrow(busyShare: number): boolean {
    return busyShare < (this.slots.size < MANY ? BUSY.few : BUSY.many);
  }
}
