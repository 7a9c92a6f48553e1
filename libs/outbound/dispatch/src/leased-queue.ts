import type { DisabledReason } from '#subscriptions/webhook-subscription.js';
import { DeliveryQueue, type Tier, type QueuedDelivery } from './delivery-queue.js';

/**
 * A subscription's queue while this process owns it: which deliveries are known, in flight or not recorded, and what
 * keeps it from being sent or released. Times are milliseconds on one clock.
 */

/** Where a queue's deliveries go, as read a moment ago. */
export type Target = {
  url: string;
  /** Null when it cannot be decrypted. */
  secret: string | null;
  previousSecret: string | undefined;
  enabled: boolean;
  disabledReason: DisabledReason | null;
  giveUpBefore: Date | null;
  failingSince: Date | null;
};

/** The state of a queue in the database. `target` is missing when the subscription was deleted. */
export type QueueView = {
  subscriptionId: number;
  /** Raised by whoever adds work; a queue is not released while this shows work that is not known here. */
  enqueued: number;
  hasRedelivery: boolean;
  target: Target | undefined;
};

/** @property after the last first attempt that is already known */
export type RefillRequest = { subscriptionId: number; after: number; room: number; skip: number };

/** `paused`: nothing may be sent until the subscription changes. `backoff`: not before a while. */
export type Hold = 'none' | 'paused' | 'backoff';

type LeasedDelivery = QueuedDelivery & { redeliveryId: number; createdAt: Date };

export class LeasedQueue<D extends LeasedDelivery> {
  readonly deliveries: DeliveryQueue<D>;
  enqueued = -1;
  /** Somebody has asked for a redelivery. */
  hasRedelivery = false;
  target: Target | undefined;
  hold: Hold = 'none';
  /** To be released as soon as nothing of it is in flight. */
  isDraining = false;
  isLost = false;
  /** Waits to be filled. */
  needsRefill = false;
  /** A statement about this queue is running; its result must not be applied to a queue that has changed hands. */
  operation: 'filling' | 'releasing' | undefined;
  /** It was claimed again while the result of its release was on its way. */
  wasClaimedAgain = false;
  /** Its lease was not renewed with the others: it may belong to somebody else, until it is shown again. */
  isLeaseUncertain = false;
  /** Deliveries that are too old, or of an ended subscription, are being failed: nothing is loaded meanwhile. */
  isGivingUp = false;
  /** When the earliest retry that this process has enqueued is due. */
  nextDueAt = Infinity;
  private viewedAt = 0;
  /** The last first attempt that is known. */
  private after = 0;
  /** The most due retries that the queue was asked for. */
  private maxDueRetries = 0;
  /** Attempts made, or given up, but not recorded yet. */
  private unrecordedCount = 0;
  private emptySinceMs: number;
  /** LoadedDelivery, in flight or not recorded: the queue still shows these as due. */
  private readonly heldIds: Set<number>;
  private readonly heldRedeliveryIds: Set<number>;
  /** Recorded since the queue was queried: the result may still show these as due. */
  private recordedIds: { scheduled: Set<number>; manual: Set<number> } | undefined;
  /** Nothing was left in the queue when it was last cleared. */
  private hasGivenUp = false;
  private closing: 'no' | 'unrecorded' | 'unseen' = 'no';

  /** @param previous the same queue, lost earlier with attempts in flight, which must not be made twice */
  constructor(
    readonly id: number,
    tier: Tier,
    now: number,
    previous?: LeasedQueue<D>,
  ) {
    this.deliveries = new DeliveryQueue<D>(tier, previous?.deliveries);
    this.heldIds = previous?.heldIds ?? new Set();
    this.heldRedeliveryIds = previous?.heldRedeliveryIds ?? new Set();
    this.emptySinceMs = now;
  }

  /** Nothing of it is known, in flight or unrecorded. */
  get isIdle(): boolean {
    return (
      this.deliveries.waitingCount === 0 &&
      this.deliveries.inFlight === 0 &&
      this.unrecordedCount === 0
    );
  }

  /** An attempt has ended the subscription: nothing is sent until that is recorded and has been read back. */
  get isClosing(): boolean {
    return this.closing !== 'no';
  }

  get canSend(): boolean {
    if (this.isLost || this.isLeaseUncertain || this.isDraining || this.isClosing) return false;
    return this.hold !== 'paused';
  }

  applyView({ enqueued, hasRedelivery, target }: QueueView, now: number): void {
    this.enqueued = enqueued;
    this.hasRedelivery = hasRedelivery;
    this.target = target;
    this.viewedAt = now;
    this.isLeaseUncertain = false;
    // What is enqueued from now on has to be failed as well, should the subscription end again.
    if (target?.enabled || target?.disabledReason === 'disabled_by_user') this.hasGivenUp = false;
  }

  /**
   * Something could not be read or sent: so that nothing overtakes it, nothing is sent until the queue has been read
   * from its beginning. @returns how many deliveries are dropped
   */
  startOver(): number {
    if (this.closing === 'no') this.closing = 'unseen';
    return this.drop();
  }

  /** The end is recorded, and any view read from now on shows it. */
  get awaitsView(): boolean {
    return this.closing === 'unseen';
  }

  reopen(): void {
    this.closing = 'no';
  }

  canRefill(room: number): boolean {
    return this.deliveries.waitingCount < room && !this.isDraining;
  }

  /** Describes what to read from the queue. From now on, recorded results are remembered until `endRefill`. */
  createRefillRequest(room: number, maxHeld: number): RefillRequest {
    // A delivery that was added late, with an id below `after`, is only found by reading from the beginning.
    if (this.isIdle) this.after = 0;
    this.recordedIds = { scheduled: new Set(), manual: new Set() };
    const skip = Math.min(this.heldIds.size, maxHeld);
    this.maxDueRetries = room + skip;
    return { subscriptionId: this.id, after: this.after, room, skip };
  }

  endRefill(): void {
    this.operation = undefined;
    this.recordedIds = undefined;
  }

  /** Whether a delivery that the queue shows is new here: neither in flight nor just recorded. */
  isNew(delivery: D): boolean {
    const { id, manual, redeliveryId, tries } = delivery;
    if (manual) {
      return (
        !this.heldRedeliveryIds.has(redeliveryId) && !this.recordedIds?.manual.has(redeliveryId)
      );
    }
    if (tries === 0) this.after = Math.max(this.after, id);
    return !this.heldIds.has(id) && !this.recordedIds?.scheduled.has(id);
  }

  /** The moment before which deliveries are too old to be sent, if this one is; otherwise undefined. */
  findCutoff({ manual, createdAt }: D): Date | undefined {
    const before = this.target?.giveUpBefore;
    return !manual && before && createdAt < before ? before : undefined;
  }

  add(deliveries: D[]): void {
    for (const { id, manual, redeliveryId } of deliveries) {
      if (manual) this.heldRedeliveryIds.add(redeliveryId);
      else this.heldIds.add(id);
    }
    this.deliveries.add(deliveries);
  }

  /** @param counts how many first attempts and how many due retries the queue showed */
  updateHasMore(
    counts: { firsts: number; retries: number },
    room: number,
    hasOutdated: boolean,
  ): void {
    // Where all of these are held, asking again at once would bring the same.
    const isMore = counts.retries >= this.maxDueRetries && this.deliveries.waitingCount > 0;
    this.deliveries.hasMore = hasOutdated || counts.firsts >= room || isMore;
  }

  /** An attempt begins. */
  begin(): void {
    this.unrecordedCount++;
  }

  /** The queue holds more, and only a little of it is known. */
  isHalfEmpty(room: number): boolean {
    return this.deliveries.hasMore && this.deliveries.waitingCount < room / 2 && !this.needsRefill;
  }

  /** This attempt ends the subscription. @returns how many deliveries are dropped */
  close(): number {
    this.closing = 'unrecorded';
    return this.drop();
  }

  /** The end is recorded. */
  markClosed(): void {
    this.closing = 'unseen';
  }

  /** Nothing of this delivery is in flight any more. */
  settle(delivery: D, now: number): void {
    this.unrecordedCount--;
    this.forget(delivery);
    if (this.isIdle) this.emptySinceMs = now;
  }

  /** The queue may have been claimed again, and its queue read, while this attempt was being made and recorded. */
  rememberRecorded(delivery: D): void {
    if (delivery.manual) this.recordedIds?.manual.add(delivery.redeliveryId);
    else this.recordedIds?.scheduled.add(delivery.id);
    this.deliveries.endElsewhere(delivery);
  }

  /** Drops what was loaded but not begun. @returns how many */
  drop(): number {
    const dropped = this.deliveries.clear();
    for (const delivery of dropped) this.forget(delivery);
    this.after = 0;
    return dropped.length;
  }

  isViewStale(now: number, maxAgeMs: number): boolean {
    return now - this.viewedAt > maxAgeMs;
  }

  /** @param all whether everything pending was failed, not only what was too old */
  endGivingUp(all: boolean): void {
    this.isGivingUp = false;
    this.hasGivenUp = all;
  }

  /** Whether everything has been failed since the last call. */
  takeGivenUp(): boolean {
    const { hasGivenUp } = this;
    this.hasGivenUp = false;
    return hasGivenUp;
  }

  /** Nothing is in it, and nothing is being done with it. */
  canBeReleased(now: number, lingerMs: number): boolean {
    if (this.operation !== undefined || this.isGivingUp || !this.isIdle) return false;
    if (this.isDraining) return true;
    if (this.needsRefill || this.deliveries.hasMore) return false;
    return this.hold !== 'none' || now - this.emptySinceMs > lingerMs;
  }

  private forget({ id, manual, redeliveryId }: D): void {
    if (manual) this.heldRedeliveryIds.delete(redeliveryId);
    else this.heldIds.delete(id);
  }
}
