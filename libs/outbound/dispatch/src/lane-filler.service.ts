import { Injectable, Logger } from '@nestjs/common';
import { performance } from 'node:perf_hooks';
import { setTimeout as wait } from 'node:timers/promises';
import { getErrorMessage } from '#kernel/errors.js';
import { StallDetector } from '#kernel/stall-detector.js';
import { DATABASE_RETRY_MS, isTransient } from '#database/connection.js';
import { EventBodies } from '#public-events/event-bodies.service.js';
import { DeliveryAttempts, eventOf } from './delivery-attempts.service.js';
import type { Delivery } from './delivery.js';
import { DeliveryMetrics } from './delivery-metrics.service.js';
import { LaneLeases } from './lane-leases.service.js';
import { OwnedLanes, type Known, type Lane } from './owned-lanes.service.js';
import { PendingDeliveries } from './pending-deliveries.service.js';

/** Few enough that the first ones need not wait for the bodies of all. */
const VIEWED_AT_ONCE = 32;

type Counted = { firsts: number; repeated: number; outdated: Date | undefined };

/** Loads due deliveries with their bodies into the lanes that ask for them. */
@Injectable()
export class LaneFiller {
  private readonly log = new Logger('webhook deliveries');
  private filling: Promise<void> | undefined;
  /**
   * Lanes whose deliveries planned before then are being failed, apart from the filling, because there may be very
   * many.
   */
  private readonly outdated = new Map<Lane, Date | 'infinity'>();
  private givingUp: Promise<void> | undefined;

  constructor(
    private readonly lanes: OwnedLanes,
    private readonly leases: LaneLeases,
    private readonly pending: PendingDeliveries,
    private readonly bodies: EventBodies,
    private readonly attempts: DeliveryAttempts,
    private readonly metrics: DeliveryMetrics,
    private readonly stalls: StallDetector,
  ) {
    lanes.whenHungry(() => {
      this.filling ??= this.fill();
    });
  }

  /** Resolves when what is being filled or failed now is done. */
  async finish(): Promise<void> {
    await Promise.all([this.filling, this.givingUp]);
  }

  /** @returns those of the lanes that this process still owns */
  async view(some: Lane[]): Promise<Lane[]> {
    const awaiting = some.filter(({ awaitsView }) => awaitsView);
    const views = new Map(
      (await this.leases.views(some.map(({ id }) => id))).map((view) => [
        view.subscriptionId,
        view,
      ]),
    );
    for (const lane of awaiting) {
      if (!lane.awaitsView) continue;
      // These were loaded while the end was being recorded.
      this.lanes.drop(lane);
      lane.reopen();
    }
    const now = performance.now();
    return some.filter((lane) => {
      const view = views.get(lane.id);
      if (view) lane.show(view, now);
      else {
        this.metrics.lostLane();
        this.lanes.lose(lane);
      }
      return view !== undefined;
    });
  }

  private async fill(): Promise<void> {
    const { hungry } = this.lanes;
    // Lanes that ask in the same turn of the event loop are filled together.
    await new Promise((resolve) => setImmediate(resolve));
    while (hungry.size > 0 && !this.lanes.stopping) {
      const some = [...hungry].slice(0, VIEWED_AT_ONCE);
      for (const lane of some) {
        hungry.delete(lane);
        lane.hungry = false;
        lane.busy = 'filling';
      }
      try {
        await this.stalls.watch(() => this.fillSome(some));
      } catch (error) {
        this.log[isTransient(error) ? 'warn' : 'error'](
          `lanes could not be filled: ${getErrorMessage(error)}`,
        );
        for (const lane of some) this.lanes.startOver(lane);
        await wait(DATABASE_RETRY_MS);
      } finally {
        for (const lane of some) lane.filled();
      }
    }
    // In the same step that saw no lane waiting: whoever asks after it has to begin anew.
    this.filling = undefined;
  }

  private async fillSome(some: Lane[]): Promise<void> {
    const open: Lane[] = [];
    for (const lane of await this.view(some)) {
      if (this.isOpen(lane)) open.push(lane);
      else await this.putAway(lane);
    }
    const { room, mostHeld } = this.lanes;
    const wanting = open.filter((lane) => lane.wantsMore(room));
    if (wanting.length === 0) return;
    const taken = await this.pending.take(wanting.map((lane) => lane.ask(room, mostHeld)));
    const asked = wanting.filter(({ redelivery }) => redelivery);
    if (asked.length > 0) {
      taken.push(...(await this.pending.takeRedeliveries(asked.map(({ id }) => id))));
    }
    await this.place(wanting, taken, room);
  }

  /** Whether more of the lane may be sent. */
  private isOpen(owned: Lane): boolean {
    if (owned.isClosing) return false;
    owned.hold = 'none';
    return owned.target?.enabled === true && !owned.givingUp;
  }

  /** Leaves what may not be sent for a resume, or fails it. */
  private async putAway(owned: Lane): Promise<void> {
    const { id, target, lane } = owned;
    if (owned.isClosing || target?.enabled) return;
    this.lanes.drop(owned);
    lane.more = false;
    if (target?.disabledReason === 'disabled_by_user') {
      owned.hold = 'parked';
      return;
    }
    // Deleted, or disabled because of failures: what is pending will not be sent.
    if (!owned.takeGivenUp()) this.giveUp(owned, 'infinity');
    else if (target) owned.hold = 'parked';
    else if (owned.isIdle) {
      if (await this.leases.forget(id, owned.planned)) this.lanes.lose(owned);
      else this.lanes.askToFill(owned);
    }
  }

  private giveUp(lane: Lane, before: Date | 'infinity'): void {
    lane.givingUp = true;
    this.outdated.set(lane, before);
    this.givingUp ??= this.giveUpAll();
  }

  /** Fails a slice of each lane in turn. */
  private async giveUpAll(): Promise<void> {
    while (this.outdated.size > 0 && !this.lanes.stopping) {
      for (const [lane, before] of this.outdated) {
        if (this.lanes.stopping) break;
        if (await this.mayHaveMore(lane, before)) continue;
        if (this.outdated.get(lane) !== before) continue;
        this.outdated.delete(lane);
        lane.gaveUp(before === 'infinity');
        this.lanes.askToFill(lane);
      }
    }
    this.givingUp = undefined;
  }

  private async mayHaveMore(lane: Lane, before: Date | 'infinity'): Promise<boolean> {
    if (lane.lost) return false;
    try {
      return await this.stalls.watch(() => this.pending.giveUp(lane.id, before));
    } catch (error) {
      this.log[isTransient(error) ? 'warn' : 'error'](
        `deliveries could not be failed: ${getErrorMessage(error)}`,
        { subscription_id: lane.id },
      );
      await wait(DATABASE_RETRY_MS);
      return true;
    }
  }

  private async place(wanting: Lane[], taken: Delivery[], room: number): Promise<void> {
    const counts = new Map<Lane, Counted>();
    const fresh = taken.filter((delivery) => this.count(delivery as Known, counts));
    await this.addKnown(fresh);
    for (const lane of wanting) {
      const counted = counts.get(lane) ?? { firsts: 0, repeated: 0, outdated: undefined };
      if (counted.outdated) this.giveUp(lane, counted.outdated);
      lane.sawAll(counted, room, counted.outdated !== undefined);
      if (lane.lane.known > 0) this.lanes.ready(lane);
      else if (lane.lane.more) this.lanes.askToFill(lane);
    }
    this.attempts.pump();
  }

  /** @returns whether the delivery is to be sent */
  private count(delivery: Known, counts: Map<Lane, Counted>): boolean {
    const lane = this.lanes.get(delivery.subscriptionId);
    if (!lane) return false;
    const counted = counts.get(lane) ?? { firsts: 0, repeated: 0, outdated: undefined };
    counts.set(lane, counted);
    if (!delivery.manual) counted[delivery.tries === 0 ? 'firsts' : 'repeated']++;
    if (!lane.isNew(delivery)) return false;
    const outdated = lane.outdatedBefore(delivery);
    if (outdated) counted.outdated = outdated;
    return outdated === undefined;
  }

  private async addKnown(fresh: Delivery[]): Promise<void> {
    const readAt = performance.now();
    const texts = await this.bodies.getTexts(fresh.map(eventOf));
    const byLane = new Map<Lane, Known[]>();
    for (const delivery of fresh) {
      const lane = this.lanes.get(delivery.subscriptionId);
      if (!lane) continue;
      // A delivery without a body also takes its turn, and then fails or is due later, without being sent.
      const body = texts.get(delivery.eventSeq) ?? 'unrendered';
      // One object, not a copy: there are thousands a second of these.
      const known = Object.assign(delivery, { body, readAt });
      const others = byLane.get(lane);
      if (others) others.push(known);
      else byLane.set(lane, [known]);
    }
    for (const [lane, deliveries] of byLane) this.lanes.add(lane, deliveries);
  }
}
