import type { DisabledReason } from '#subscriptions/webhook-subscription.js';
import { DeliveryLane, type Pace, type Queued } from './delivery-lane.js';

/**
 * A subscription's lane while this process owns it: which deliveries are known, in flight or not recorded, and what
 * keeps it from being sent or released. Times are milliseconds on one clock.
 */

/** Where a lane's deliveries go, as read a moment ago. */
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

/** The state of a lane in the database. `target` is missing when the subscription was deleted. */
export type LaneView = {
  subscriptionId: number;
  /** Raised by whoever adds work; a lane is not released while this shows work that is not known here. */
  planned: number;
  redelivery: boolean;
  target: Target | undefined;
};

/** @property after the last first attempt that is already known */
export type Wanted = { subscriptionId: number; after: number; room: number; skip: number };

/** `parked`: nothing may be sent until the subscription changes. `trouble`: not before a while. */
export type Hold = 'none' | 'parked' | 'trouble';

type Taken = Queued & { redeliveryId: number; createdAt: Date };

export class OwnedLane<D extends Taken> {
  readonly lane: DeliveryLane<D>;
  planned = -1;
  /** Somebody has asked for a redelivery. */
  redelivery = false;
  target: Target | undefined;
  hold: Hold = 'none';
  /** To be released as soon as nothing of it is in flight. */
  leaving = false;
  lost = false;
  /** Waits to be filled. */
  hungry = false;
  /** A statement about this lane is running; its result must not be applied to a lane that has changed hands. */
  busy: 'filling' | 'releasing' | undefined;
  /** It was claimed anew while its release was being answered. */
  claimedAgain = false;
  /** Its lease was not renewed with the others: it may belong to somebody else, until it is shown again. */
  doubted = false;
  /** What is too old, or of a subscription that has ended, is being failed: nothing is taken meanwhile. */
  givingUp = false;
  /** When the earliest retry that this process has planned is due. */
  nextDue = Infinity;
  private viewedAt = 0;
  /** The last first attempt that is known. */
  private after = 0;
  /** The most due retries that the queue was asked for. */
  private mostRepeated = 0;
  /** Attempts made, or given up, but not recorded yet. */
  private unrecorded = 0;
  private emptySince: number;
  /** Known, in flight or not recorded: the queue still shows these as due. */
  private readonly held: Set<number>;
  private readonly heldManual: Set<number>;
  /** Recorded since the queue was asked: its answer may still show these as due. */
  private settled: { scheduled: Set<number>; manual: Set<number> } | undefined;
  /** Nothing was left in the queue when it was last cleared. */
  private givenUp = false;
  private closing: 'no' | 'unrecorded' | 'unseen' = 'no';

  /** @param before the same lane, lost earlier with attempts in flight, which must not be made twice */
  constructor(
    readonly id: number,
    pace: Pace,
    now: number,
    before?: OwnedLane<D>,
  ) {
    this.lane = new DeliveryLane<D>(pace, before?.lane);
    this.held = before?.held ?? new Set();
    this.heldManual = before?.heldManual ?? new Set();
    this.emptySince = now;
  }

  /** Nothing of it is known, in flight or unrecorded. */
  get isIdle(): boolean {
    return this.lane.known === 0 && this.lane.inFlight === 0 && this.unrecorded === 0;
  }

  /** An attempt has ended the subscription: nothing is sent until that is recorded and has been read back. */
  get isClosing(): boolean {
    return this.closing !== 'no';
  }

  get maySend(): boolean {
    if (this.lost || this.doubted || this.leaving || this.isClosing) return false;
    return this.hold !== 'parked';
  }

  show({ planned, redelivery, target }: LaneView, now: number): void {
    this.planned = planned;
    this.redelivery = redelivery;
    this.target = target;
    this.viewedAt = now;
    this.doubted = false;
    // What is planned from now on has to be failed as well, should the subscription end again.
    if (target?.enabled || target?.disabledReason === 'disabled_by_user') this.givenUp = false;
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

  wantsMore(room: number): boolean {
    return this.lane.known < room && !this.leaving;
  }

  /** What to read from the queue. From now on, recorded results are remembered until `filled`. */
  ask(room: number, mostHeld: number): Wanted {
    // A delivery that was added late, with an id below `after`, is only found by reading from the beginning.
    if (this.isIdle) this.after = 0;
    this.settled = { scheduled: new Set(), manual: new Set() };
    const skip = Math.min(this.held.size, mostHeld);
    this.mostRepeated = room + skip;
    return { subscriptionId: this.id, after: this.after, room, skip };
  }

  filled(): void {
    this.busy = undefined;
    this.settled = undefined;
  }

  /** Whether a delivery that the queue shows is new here: neither in flight nor just recorded. */
  isNew(delivery: D): boolean {
    const { id, manual, redeliveryId, tries } = delivery;
    if (manual) {
      return !this.heldManual.has(redeliveryId) && !this.settled?.manual.has(redeliveryId);
    }
    if (tries === 0) this.after = Math.max(this.after, id);
    return !this.held.has(id) && !this.settled?.scheduled.has(id);
  }

  /** The moment before which deliveries are too old to be sent, if this one is; otherwise undefined. */
  outdatedBefore({ manual, createdAt }: D): Date | undefined {
    const before = this.target?.giveUpBefore;
    return !manual && before && createdAt < before ? before : undefined;
  }

  /** @param deliveries all that is pending: first attempts, in the order of their ids */
  knowsAll(deliveries: D[]): void {
    this.after = deliveries.at(-1)?.id ?? this.after;
    this.lane.more = false;
  }

  add(deliveries: D[]): void {
    for (const { id, manual, redeliveryId } of deliveries) {
      if (manual) this.heldManual.add(redeliveryId);
      else this.held.add(id);
    }
    this.lane.add(deliveries);
  }

  /** @param counted how many first attempts and how many due retries the queue showed */
  sawAll(counted: { firsts: number; repeated: number }, room: number, outdated: boolean): void {
    // Where all of these are held, asking again at once would bring the same.
    const isMore = counted.repeated >= this.mostRepeated && this.lane.known > 0;
    this.lane.more = outdated || counted.firsts >= room || isMore;
  }

  /** An attempt begins. */
  begin(): void {
    this.unrecorded++;
  }

  /** The queue holds more, and only a little of it is known. */
  isHalfEmpty(room: number): boolean {
    return this.lane.more && this.lane.known < room / 2 && !this.hungry;
  }

  /** This attempt ends the subscription. @returns how many deliveries are dropped */
  close(): number {
    this.closing = 'unrecorded';
    return this.drop();
  }

  /** The end is recorded. */
  closed(): void {
    this.closing = 'unseen';
  }

  /** Nothing of this delivery is in flight any more. */
  settle(delivery: D, now: number): void {
    this.unrecorded--;
    this.unhold(delivery);
    if (this.isIdle) this.emptySince = now;
  }

  /** The lane may have been claimed again, and its queue read, while this attempt was being made and recorded. */
  remember(delivery: D): void {
    if (delivery.manual) this.settled?.manual.add(delivery.redeliveryId);
    else this.settled?.scheduled.add(delivery.id);
    this.lane.endedElsewhere(delivery);
  }

  /** Drops what was loaded but not begun. @returns how many */
  drop(): number {
    const dropped = this.lane.clear();
    for (const delivery of dropped) this.unhold(delivery);
    this.after = 0;
    return dropped.length;
  }

  isViewOld(now: number, keptMs: number): boolean {
    return now - this.viewedAt > keptMs;
  }

  /** @param all whether everything pending was failed, not only what was too old */
  gaveUp(all: boolean): void {
    this.givingUp = false;
    this.givenUp = all;
  }

  /** Whether everything has been failed since the last call. */
  takeGivenUp(): boolean {
    const { givenUp } = this;
    this.givenUp = false;
    return givenUp;
  }

  /** Nothing is in it, and nothing is being done with it. */
  mayBeReleased(now: number, lingerMs: number): boolean {
    if (this.busy !== undefined || this.givingUp || !this.isIdle) return false;
    if (this.leaving) return true;
    if (this.hungry || this.lane.more) return false;
    return this.hold !== 'none' || now - this.emptySince > lingerMs;
  }

  private unhold({ id, manual, redeliveryId }: D): void {
    if (manual) this.heldManual.delete(redeliveryId);
    else this.held.delete(id);
  }
}
