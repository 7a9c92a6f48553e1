import type { DisabledReason } from '#subscriptions/webhook-subscription.js';
import { DeliveryLane, type Pace, type Queued } from './delivery-lane.js';

/**
 * A subscription's lane while this process owns it: what of it is known, under way or not recorded, and what
 * keeps it from being sent or released. Times enter as milliseconds of one clock.
 */

/** Where a lane's deliveries go, as of a moment ago. */
export type Target = {
  url: string;
  /** Null: it cannot be decrypted. */
  secret: string | null;
  previousSecret: string | undefined;
  enabled: boolean;
  disabledReason: DisabledReason | null;
  giveUpBefore: Date | null;
  failingSince: Date | null;
};

/** What a lane is about now. `target` is missing when the subscription was deleted. */
export type LaneView = {
  subscriptionId: number;
  /** Raised by whoever adds work; a release refuses to let go of what is not known yet. */
  planned: number;
  redelivery: boolean;
  target: Target | undefined;
};

/** @property after the last first attempt that is known already */
export type Wanted = { subscriptionId: number; after: number; room: number; skip: number };

/** Nothing of it may be sent until somebody says so, or not before a while. */
export type Hold = 'none' | 'parked' | 'trouble';

type Taken = Queued & { redeliveryId: number; createdAt: Date };

export class OwnedLane<D extends Taken> {
  readonly lane: DeliveryLane<D>;
  planned = -1;
  /** A redelivery has been asked for. */
  redelivery = false;
  target: Target | undefined;
  hold: Hold = 'none';
  /** To be released as soon as nothing of it is in flight. */
  leaving = false;
  lost = false;
  /** It is to be filled. */
  hungry = false;
  /** The queue is being asked, or told: what it answers must not meet a lane that has changed hands. */
  busy: 'filling' | 'releasing' | undefined;
  /** When the earliest retry that this process has planned is due. */
  nextDue = Infinity;
  private viewedAt = 0;
  /** The last first attempt that is known. */
  private after = 0;
  /** Attempts made, or given up, and not recorded. */
  private unrecorded = 0;
  private emptySince: number;
  /** Known, under way or not recorded: the queue still shows them as due. */
  private readonly held: Set<number>;
  private readonly heldManual: Set<number>;
  /** Recorded since the queue was asked last: its answer may still show them as due. */
  private settled: Set<number> | undefined;
  private closing: 'no' | 'unrecorded' | 'unseen' = 'no';

  /** @param before the same lane, lost earlier with attempts under way: they must not be made twice */
  constructor(
    readonly id: number,
    pace: Pace,
    now: number,
    before?: OwnedLane<D>,
  ) {
    this.lane = new DeliveryLane<D>(pace);
    this.held = before?.held ?? new Set();
    this.heldManual = before?.heldManual ?? new Set();
    this.emptySince = now;
  }

  /** Nothing of it is known, in flight or unrecorded. */
  get isIdle(): boolean {
    return this.lane.known === 0 && this.lane.inFlight === 0 && this.unrecorded === 0;
  }

  /** An attempt has ended the subscription: nothing is sent until that is recorded, and then seen. */
  get isClosing(): boolean {
    return this.closing !== 'no';
  }

  get maySend(): boolean {
    return !this.lost && !this.leaving && !this.isClosing && this.hold !== 'parked';
  }

  show({ planned, redelivery, target }: LaneView, now: number): void {
    this.planned = planned;
    this.redelivery = redelivery;
    this.target = target;
    this.viewedAt = now;
  }

  /** The end is recorded, and what is shown next was asked after that. */
  get awaitsView(): boolean {
    return this.closing === 'unseen';
  }

  reopen(): void {
    this.closing = 'no';
  }

  wantsMore(room: number): boolean {
    return this.lane.known < room && !this.leaving;
  }

  /** What to ask the queue for. From then on what is recorded is remembered until `filled`. */
  ask(room: number, mostHeld: number): Wanted {
    // Whatever came late, behind the last that is known, is seen when there is nothing else.
    if (this.isIdle) this.after = 0;
    this.settled = new Set();
    const skip = Math.min(this.held.size, mostHeld);
    return { subscriptionId: this.id, after: this.after, room, skip };
  }

  filled(): void {
    this.busy = undefined;
    this.settled = undefined;
  }

  /** Whether a delivery that the queue shows is new here, and not under way or just recorded. */
  isNew(delivery: D): boolean {
    if (delivery.manual) return !this.heldManual.has(delivery.redeliveryId);
    if (delivery.tries === 0) this.after = Math.max(this.after, delivery.id);
    return !this.held.has(delivery.id) && !this.settled?.has(delivery.id);
  }

  /** Until when what was planned is too old for this delivery to be sent; undefined: it may be. */
  outdatedBefore({ manual, createdAt }: D): Date | undefined {
    const before = this.target?.giveUpBefore;
    return !manual && before && createdAt < before ? before : undefined;
  }

  add(deliveries: D[]): void {
    for (const { id, manual, redeliveryId } of deliveries) {
      if (manual) this.heldManual.add(redeliveryId);
      else this.held.add(id);
    }
    this.lane.add(deliveries);
  }

  /** @param counted what the queue showed: first attempts, and those due again */
  sawAll(counted: { firsts: number; repeated: number }, room: number, outdated: boolean): void {
    this.lane.more =
      outdated || counted.firsts >= room || counted.repeated >= room + this.held.size;
  }

  /** An attempt begins. */
  begin(): void {
    this.unrecorded++;
  }

  /** There is more in the queue, and little of it is known. */
  isHalfEmpty(room: number): boolean {
    return this.lane.more && this.lane.known < room / 2 && !this.hungry;
  }

  /** The subscription ends with this attempt. @returns how many deliveries are dropped */
  close(): number {
    this.closing = 'unrecorded';
    return this.drop();
  }

  /** The end is recorded. */
  closed(): void {
    this.closing = 'unseen';
  }

  /** Nothing of this delivery is under way any more. */
  settle(delivery: D, now: number): void {
    this.unrecorded--;
    this.unhold(delivery);
    if (this.isIdle) this.emptySince = now;
  }

  /** It was recorded while the lane may have been owned anew, and the queue asked. */
  remember(delivery: D): void {
    this.settled?.add(delivery.id);
  }

  /** Taken, and not sent after all. @returns how many */
  drop(): number {
    const dropped = this.lane.clear();
    for (const delivery of dropped) this.unhold(delivery);
    this.after = 0;
    return dropped.length;
  }

  isViewOld(now: number, keptMs: number): boolean {
    return now - this.viewedAt > keptMs;
  }

  /** Nothing is in it and nothing is being done with it. */
  mayBeReleased(now: number, lingerMs: number): boolean {
    if (this.busy !== undefined || !this.isIdle) return false;
    if (this.leaving) return true;
    if (this.hungry || this.lane.more) return false;
    return this.hold !== 'none' || now - this.emptySince > lingerMs;
  }

  private unhold({ id, manual, redeliveryId }: D): void {
    if (manual) this.heldManual.delete(redeliveryId);
    else this.held.delete(id);
  }
}
