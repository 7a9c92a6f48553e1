import type { Tier } from './delivery-queue.js';

/**
 * How many attempts a process makes at once, by tier, so that slow or unavailable receivers cannot use up the slots of
 * the others. Times are milliseconds on one clock.
 */

const SLOTS: Record<Tier, number> = { fast: 768, slow: 192, probe: 64 };
/** After this long an attempt of a fast queue counts as a slow one. */
export const SLOW_MS = 2_000;
/**
 * No attempt begins while this many results wait to be recorded, because a process that is killed repeats those attempts.
 * What a running statement records does not count: the server completes it.
 */
export const MAX_WAITING_RESULTS = 128;
/** With quick receivers this many attempts at once already keep a process busy; only slow receivers need more. */
const MANY_IN_FLIGHT = 256;
/** Above these shares of busy time more attempts at once would not be faster: with few in flight, and with many. */
const MAX_BUSY_SHARE = { few: 0.85, many: 0.5 };

export type Slot = { tier: Tier; readonly startedAt: number };

export class AttemptSlots {
  private readonly used: Record<Tier, number> = { fast: 0, slow: 0, probe: 0 };
  /** In the order in which they began. */
  private readonly slots = new Set<Slot>();
  private unrecordedCount = 0;
  private recordingCount = 0;

  get usedByTier(): Readonly<Record<Tier, number>> {
    return this.used;
  }

  get inFlight(): number {
    return this.slots.size;
  }

  /** Attempts that were made but are not recorded yet. */
  get unrecorded(): number {
    return this.unrecordedCount;
  }

  get canBegin(): boolean {
    return this.unrecordedCount - this.recordingCount < MAX_WAITING_RESULTS;
  }

  isFree(tier: Tier): boolean {
    return this.used[tier] < SLOTS[tier];
  }

  begin(tier: Tier, now: number): Slot {
    const slot = { tier, startedAt: now };
    this.used[tier]++;
    this.slots.add(slot);
    return slot;
  }

  /** @param wasMade whether an attempt was made that has to be recorded */
  end(slot: Slot, wasMade: boolean): void {
    this.slots.delete(slot);
    this.used[slot.tier]--;
    if (wasMade) this.unrecordedCount++;
  }

  /** A statement records so many results from now on. @returns whether attempts may begin again that had to wait before */
  startRecording(count: number): boolean {
    const couldBegin = this.canBegin;
    this.recordingCount += count;
    return this.canBegin && !couldBegin;
  }

  /** That statement has ended: what it has not recorded waits again. */
  endRecording(count: number): void {
    this.recordingCount -= count;
  }

  /** @returns whether attempts may begin again that had to wait before */
  markRecorded(): boolean {
    const couldBegin = this.canBegin;
    this.unrecordedCount--;
    return this.canBegin && !couldBegin;
  }

  /** Moves long-running attempts of fast queues to the slow slots, which frees fast ones. */
  moveSlowAttempts(now: number): void {
    for (const slot of this.slots) {
      if (now - slot.startedAt < SLOW_MS) break;
      if (slot.tier !== 'fast') continue;
      this.used.fast--;
      this.used.slow++;
      slot.tier = 'slow';
    }
  }

  /** @param busyShare how much of its time the process was busy, from 0 to 1 */
  canGrow(busyShare: number): boolean {
    return (
      busyShare < (this.slots.size < MANY_IN_FLIGHT ? MAX_BUSY_SHARE.few : MAX_BUSY_SHARE.many)
    );
  }
}
