import { Injectable } from '@nestjs/common';
import { performance } from 'node:perf_hooks';
import type { Body } from '#public-events/event-bodies.service.js';
import { AttemptSlots } from './attempt-slots.js';
import type { Delivery } from './delivery.js';
import type { Pace } from './delivery-lane.js';
import { DeliveryMetrics } from './delivery-metrics.service.js';
import { OwnedLane } from './owned-lane.js';

/** Deliveries kept in memory: in all, as far as each lane has a few, and of one lane. */
const KNOWN = { most: 8_192, ofLane: 64, leastOfLane: 4 };
/** A lease lasts 30 s from its last renewal; nothing new is sent in the last of them. */
const LEASE_TRUSTED_MS = 25_000;

/** A delivery in memory, with its body as of `readAt`. */
export type Known = Delivery & { body: Body; readAt: number };

export type Lane = OwnedLane<Known>;

/** The lanes of this process and what is known of them; the services that own, fill and attempt share it. */
@Injectable()
export class OwnedLanes {
  readonly slots = new AttemptSlots();
  /** Lanes that may have something to send, in turn. */
  readonly rings: Record<Pace, Set<Lane>> = { fast: new Set(), slow: new Set(), probe: new Set() };
  /** To be filled. */
  readonly hungry = new Set<Lane>();
  stopping = false;
  private readonly lanes = new Map<number, Lane>();
  /** Lost with attempts under way: should one come back, they must not be made twice. */
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
    if (this.lanes.has(id)) return;
    const lane = new OwnedLane<Known>(id, pace, performance.now(), this.left.get(id));
    this.lanes.set(id, lane);
    this.askToFill(lane);
  }

  /** @param fill called in the same turn in which a lane asks */
  whenHungry(fill: () => void): void {
    this.onHungry = fill;
  }

  askToFill(lane: Lane): void {
    // Whoever lets go of it looks again when that fails.
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

  /** How many held deliveries a question may have to pass over. */
  readonly mostHeld = 2 * KNOWN.ofLane;

  add(lane: Lane, deliveries: Known[]): void {
    this.known += deliveries.length;
    lane.add(deliveries);
  }

  /** A delivery of it has begun. */
  begun(): void {
    this.known--;
  }

  ready(lane: Lane): void {
    if (lane.lane.known > 0) this.rings[lane.lane.pace].add(lane);
  }

  drop(lane: Lane): void {
    this.known -= lane.drop();
  }

  /** An attempt ends its subscription. */
  close(lane: Lane): void {
    this.known -= lane.close();
  }

  settle(lane: Lane, delivery: Known): void {
    lane.settle(delivery, performance.now());
    // It may be owned anew by now.
    this.lanes.get(lane.id)?.remember(delivery);
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

  /** @param asked when the renewal was asked for */
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
