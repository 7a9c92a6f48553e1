import { Injectable } from '@nestjs/common';
import { performance } from 'node:perf_hooks';
import type { Body } from '#public-events/event-bodies.service.js';
import { AttemptSlots } from './attempt-slots.js';
import type { Delivery } from './delivery.js';
import type { Pace } from './delivery-lane.js';
import { DeliveryMetrics } from './delivery-metrics.service.js';
import { OwnedLane, type LaneView } from './owned-lane.js';

/** Deliveries kept in memory: in all, of one lane at most, and of each lane at least, even beyond the total. */
const KNOWN = { most: 8_192, ofLane: 64, leastOfLane: 4 };
/** A lease lasts 30 s from its last renewal; in the last seconds nothing new is sent. */
const LEASE_TRUSTED_MS = 25_000;

/** A delivery in memory, with its body as of `readAt`. */
export type Known = Delivery & { body: Body; readAt: number };

export type Lane = OwnedLane<Known>;

/** The lanes that this process owns and what is known of them, shared by the services that own, fill and send. */
@Injectable()
export class OwnedLanes {
  readonly slots = new AttemptSlots();
  /** Lanes that may have something to send, in rotation. */
  readonly rings: Record<Pace, Set<Lane>> = { fast: new Set(), slow: new Set(), probe: new Set() };
  /** Lanes that wait to be filled. */
  readonly hungry = new Set<Lane>();
  stopping = false;
  private readonly lanes = new Map<number, Lane>();
  /** Lanes lost with attempts in flight: if one is claimed again, those must not be made twice. */
  private readonly left = new Map<number, Lane>();
  private known = 0;
  private renewedAt = performance.now();
  private onHungry: () => void = () => undefined;

  constructor(metrics: DeliveryMetrics) {
    metrics.watch({
      lanes: () => this.countByPace(),
      inFlight: () => this.slots.taken,
      known: () => this.known,
      unrecorded: () => this.slots.unrecorded,
    });
  }

  get size(): number {
    return this.lanes.size;
  }

  get ids(): Iterable<number> {
    return this.lanes.keys();
  }

  get all(): Iterable<Lane> {
    return this.lanes.values();
  }

  get(id: number): Lane | undefined {
    return this.lanes.get(id);
  }

  own(id: number, pace: Pace): void {
    const owned = this.lanes.get(id);
    // It may have been claimed right after its release, whose answer comes later than that of the claim.
    if (owned) owned.claimedAgain = owned.busy === 'releasing';
    else this.askToFill(this.begin(id, pace));
  }

  /** A lane that was claimed together with all that is pending in it, so nothing is read of it. */
  take(view: LaneView, pace: Pace, deliveries: Known[]): void {
    const lane = this.begin(view.subscriptionId, pace);
    lane.show(view, performance.now());
    lane.knowsAll(deliveries);
    this.add(lane, deliveries);
    this.ready(lane);
  }

  private begin(id: number, pace: Pace): Lane {
    const lane = new OwnedLane<Known>(id, pace, performance.now(), this.left.get(id));
    this.lanes.set(id, lane);
    return lane;
  }

  /** @param fill called in the same turn of the event loop in which a lane asks */
  whenHungry(fill: () => void): void {
    this.onHungry = fill;
  }

  askToFill(lane: Lane): void {
    // A release in progress asks again itself if it fails.
    if (lane.lost || this.stopping || lane.busy === 'releasing') return;
    lane.hungry = true;
    this.hungry.add(lane);
    this.onHungry();
  }

  /** How many deliveries of one lane may be in memory. */
  get room(): number {
    const share = Math.floor(KNOWN.most / Math.max(1, this.lanes.size));
    return Math.max(KNOWN.leastOfLane, Math.min(KNOWN.ofLane, share));
  }

  /** How many held deliveries one query may have to skip. */
  readonly mostHeld = 2 * KNOWN.ofLane;

  add(lane: Lane, deliveries: Known[]): void {
    this.known += deliveries.length;
    lane.add(deliveries);
  }

  /** A delivery in memory has begun. */
  begun(): void {
    this.known--;
  }

  ready(lane: Lane): void {
    if (lane.lane.known > 0) this.rings[lane.lane.pace].add(lane);
  }

  drop(lane: Lane): void {
    this.known -= lane.drop();
  }

  /** Reads all of it again before anything of it is sent. */
  startOver(lane: Lane): void {
    // It may have been lost and claimed again meanwhile.
    const owned = this.lanes.get(lane.id) ?? lane;
    this.known -= owned.startOver();
    this.askToFill(owned);
  }

  /** An attempt has ended the subscription of this lane. */
  close(lane: Lane): void {
    this.known -= lane.close();
  }

  settle(lane: Lane, delivery: Known): void {
    lane.settle(delivery, performance.now());
    // The lane may have been claimed again by now, and lost once more.
    this.lanes.get(lane.id)?.remember(delivery);
    this.left.get(lane.id)?.remember(delivery);
    if (lane.isIdle && this.left.get(lane.id) === lane) this.left.delete(lane.id);
  }

  lose(lane: Lane): void {
    lane.lost = true;
    this.drop(lane);
    this.hungry.delete(lane);
    for (const ring of Object.values(this.rings)) ring.delete(lane);
    if (this.lanes.get(lane.id) === lane) this.lanes.delete(lane.id);
    if (!lane.isIdle) this.left.set(lane.id, lane);
  }

  released(lane: Lane): void {
    this.lose(lane);
    if (lane.claimedAgain) this.own(lane.id, lane.lane.pace);
  }

  /** @param asked when the renewal was requested */
  renewed(asked: number): void {
    this.renewedAt = asked;
  }

  get isLeaseTrusted(): boolean {
    return performance.now() - this.renewedAt < LEASE_TRUSTED_MS;
  }

  private countByPace(): Record<Pace, number> {
    const counts = { fast: 0, slow: 0, probe: 0 };
    for (const { lane } of this.lanes.values()) counts[lane.pace]++;
    return counts;
  }
}
