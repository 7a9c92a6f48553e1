import { Injectable, Logger } from '@nestjs/common';
import { performance } from 'node:perf_hooks';
import { setTimeout as wait } from 'node:timers/promises';
import { Config } from '#kernel/config.js';
import { messageOf } from '#kernel/errors.js';
import { pause } from '#kernel/pause.js';
import { StallDetector } from '#kernel/stall-detector.js';
import { ROOT_CONTEXT, SpanKind, SpanStatusCode, traced, type Span } from '#kernel/tracing.js';
import { isDatabaseUnavailable } from '#database/connection.js';
import { Notifications } from '#database/notifications.js';
import { DeliveryLane, type Pace, type Signal } from './delivery-lane.js';
import { DeliveryMetrics } from './delivery-metrics.service.js';
import { AttemptResults, doneAt } from './attempt-results.service.js';
import type { Delivery } from './delivery.js';
import { LaneLeases, type LaneView, type Release, type Target } from './lane-leases.service.js';
import { PendingDeliveries } from './pending-deliveries.service.js';
import {
  EventBodies,
  TEXT_KEPT_MS,
  type Body,
  type PublicEventRef,
} from '#public-events/event-bodies.service.js';
import { bodyOf } from '#public-events/public-events.js';
import { WebhookClient, type Attempt, type Attempted } from '#sending/webhook.client.js';
import {
  afterAttempt,
  afterManualAttempt,
  endsSubscription,
  type Next,
} from '#subscriptions/webhook-delivery.js';
import { WORK_CHANNEL } from '#subscriptions/work-hints.service.js';
import { attemptResult, isSuccess } from '#sending/outcome.js';

/** Attempts in flight at once: receivers that are slow or away cannot take the place of the others. */
const SLOTS: Record<Pace, number> = { fast: 768, slow: 192, probe: 64 };
/** From then on an attempt of a fast lane counts as a slow one. */
const SLOW_MS = 2_000;
/** With so many attempts made and not recorded none is begun: a process that is killed repeats them. */
const UNRECORDED = 2_048;
/** Deliveries kept in memory: in all, as far as each lane has a few, and of one lane. */
const KNOWN = { most: 8_192, ofLane: 64, leastOfLane: 4 };
const CLAIM = 32;
/** So many lanes at once; when more want to be owned, the oldest make room. */
const OWNED = { most: 2_000, makeRoom: 64 };
/** Few enough that the first of them need not wait for the bodies of all. */
const VIEWED_AT_ONCE = 32;
const POLL_MS = 500;
const TICK_MS = 100;
const LINGER_MS = 1_000;
const VIEW_KEPT_MS = 1_000;
const RENEW_EVERY_MS = 5_000;
/** A lease lasts 30 s from its last renewal; nothing new is sent in the last of them. */
const LEASE_TRUSTED_MS = 25_000;
const DATABASE_UNAVAILABLE_MS = 1_000;
const RECORD_TRIES = 3;
/** So many attempts at once keep a process busy with quick receivers; more are for slow ones. */
const MANY = 256;
/** Above these shares of its time more at once would not be faster: with few, and with many in flight. */
const BUSY = { few: 0.85, many: 0.5 };

type Known = Delivery & { body: Body; readAt: number };

type Owned = {
  id: number;
  lane: DeliveryLane<Known>;
  planned: number;
  /** A person has asked for a delivery in it. */
  redelivery: boolean;
  target: Target | undefined;
  viewedAt: number;
  /** The last first attempt that is known. */
  after: number;
  /** Deliveries that are known, under way or not recorded: the queue still shows them as due. */
  held: Set<number>;
  heldManual: Set<number>;
  /** What was recorded since the queue was asked last: its answer may still show it as due. */
  settled: Set<number> | undefined;
  /** The queue is being asked, or told: what it answers must not meet a lane that has changed hands. */
  busy: 'filling' | 'releasing' | undefined;
  /** Attempts made, or given up, and not recorded. */
  unrecorded: number;
  nextDue: number;
  emptySince: number;
  hungry: boolean;
  hold: Release['hold'];
  /** An attempt has ended the subscription: nothing is sent until that is recorded, and then seen. */
  ending: 'no' | 'unrecorded' | 'unseen';
  /** Given back as soon as nothing of it is in flight. */
  leaving: boolean;
  lost: boolean;
};

/**
 * Owns lanes, and sends what is in them: round and round, one delivery of each at a turn, so that
 * whoever has many waits behind their own. Lanes stay with a process while there is work in them.
 */
@Injectable()
export class DeliveryWorker {
  private readonly log = new Logger('webhook deliveries');
  private readonly lanes = new Map<number, Owned>();
  /** Lanes that may have something to send, in turn. */
  private readonly rings: Record<Pace, Set<Owned>> = {
    fast: new Set(),
    slow: new Set(),
    probe: new Set(),
  };
  private readonly taken: Record<Pace, number> = { fast: 0, slow: 0, probe: 0 };
  private readonly inFlight = new Set<Flight>();
  private readonly hungry = new Set<Owned>();
  /** Lost with attempts under way: should one come back, they must not be made twice. */
  private readonly left = new Map<number, Owned>();
  private known = 0;
  private unrecorded = 0;
  private refilling: Promise<void> | undefined;
  private woken = false;
  private wakeUp: () => void = () => undefined;
  private stopping = false;
  private renewedAt = performance.now();
  private othersThere = 0;
  private utilisation = performance.eventLoopUtilization();
  private busyShare = 0;

  constructor(
    private readonly leases: LaneLeases,
    private readonly pending: PendingDeliveries,
    private readonly results: AttemptResults,
    private readonly bodies: EventBodies,
    private readonly client: WebhookClient,
    private readonly metrics: DeliveryMetrics,
    private readonly stalls: StallDetector,
    private readonly config: Config,
  ) {
    metrics.watch({
      lanes: () => this.countLanes(),
      inFlight: () => this.taken,
      known: () => this.known,
      unrecorded: () => this.unrecorded,
    });
  }

  /** Whether dispatchers elsewhere would like to hear of new work. */
  get isAlone(): boolean {
    return this.othersThere === 0;
  }

  /** There may be something to do, perhaps in lanes that are ours already. */
  wake(subscriptionIds: Iterable<number>): void {
    for (const id of subscriptionIds) {
      const owned = this.lanes.get(id);
      if (owned) this.refillSoon(owned);
      else this.claimSoon();
    }
  }

  /** Until the signal aborts; what is in flight then is `finish`'s. */
  async run(signal: AbortSignal): Promise<void> {
    signal.addEventListener(
      'abort',
      () => {
        this.stopping = true;
        this.claimSoon();
      },
      { once: true },
    );
    const tick = setInterval(() => this.tick(), TICK_MS);
    const hints = new Notifications(this.config.databaseUrl, WORK_CHANNEL, (payload) =>
      this.onHint(payload),
    );
    await hints.listen();
    try {
      await Promise.all([this.claimLoop(signal), this.renewLoop(signal)]);
    } finally {
      clearInterval(tick);
      await hints.close();
    }
  }

  /**
   * Waits for what is in flight, and hands lanes back as they become free.
   * @returns how many attempts were left behind, to be made again later
   */
  async finish(milliseconds: number): Promise<number> {
    this.stopping = true;
    const deadline = performance.now() + milliseconds;
    await this.refilling;
    for (;;) {
      for (const owned of this.lanes.values()) this.drop(owned, owned.lane.clear());
      const idle = [...this.lanes.values()].filter(isIdle);
      const late = performance.now() > deadline;
      try {
        await this.release(late ? [...this.lanes.values()] : idle);
      } catch (error) {
        this.log.warn(`lanes cannot be handed back: ${messageOf(error)}`);
        await wait(Math.min(DATABASE_UNAVAILABLE_MS, milliseconds));
      }
      if (this.lanes.size === 0 || late) break;
      await wait(20);
    }
    await this.leases.leave().catch((error: unknown) => this.log.debug(messageOf(error)));
    return this.inFlight.size;
  }

  /** Names one subscription, or none in particular. */
  private onHint(payload: string): void {
    if (payload !== '') this.wake([Number(payload)]);
    else {
      this.wake(this.lanes.keys());
      this.claimSoon();
    }
  }

  private claimSoon(): void {
    this.woken = true;
    this.wakeUp();
  }

  private async claimLoop(signal: AbortSignal): Promise<void> {
    for (let away = false; !signal.aborted;) {
      this.woken = false;
      try {
        const claimed = await this.stalls.during(() => this.claim());
        away = false;
        if (!claimed) await this.idle();
      } catch (error) {
        if (!away) this.log.warn(`lanes cannot be claimed: ${messageOf(error)}`);
        away = true;
        await wait(DATABASE_UNAVAILABLE_MS);
      }
    }
  }

  private async claim(): Promise<boolean> {
    if (!this.isLeaseTrusted()) return false;
    if (this.lanes.size >= OWNED.most) {
      let room = OWNED.makeRoom;
      for (const owned of this.lanes.values()) if (room-- > 0) owned.leaving = true;
      return false;
    }
    const claimed = await this.leases.claim(CLAIM);
    for (const { subscriptionId, pace } of claimed) {
      if (this.lanes.has(subscriptionId)) continue;
      const before = this.left.get(subscriptionId);
      const owned: Owned = {
        id: subscriptionId,
        lane: new DeliveryLane<Known>(pace),
        planned: -1,
        redelivery: false,
        target: undefined,
        viewedAt: 0,
        after: 0,
        held: before?.held ?? new Set(),
        heldManual: before?.heldManual ?? new Set(),
        settled: undefined,
        busy: undefined,
        unrecorded: 0,
        nextDue: Infinity,
        emptySince: performance.now(),
        hungry: false,
        hold: 'none',
        ending: 'no',
        leaving: false,
        lost: false,
      };
      this.lanes.set(subscriptionId, owned);
      this.refillSoon(owned);
    }
    return claimed.length > 0;
  }

  private async idle(): Promise<void> {
    const due = await this.leases.millisecondsToNext();
    const milliseconds = Math.min(POLL_MS, Math.max(1, Math.ceil(due ?? POLL_MS)));
    if (this.woken) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, milliseconds);
      this.wakeUp = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  private refillSoon(owned: Owned): void {
    // Whoever lets go of it looks again when that fails.
    if (owned.lost || this.stopping || owned.busy === 'releasing') return;
    owned.hungry = true;
    this.hungry.add(owned);
    this.refilling ??= this.refill().finally(() => {
      this.refilling = undefined;
    });
  }

  private async refill(): Promise<void> {
    // Those who ask in the same turn of the event loop are served together.
    await new Promise((resolve) => setImmediate(resolve));
    while (this.hungry.size > 0 && !this.stopping) {
      const some = [...this.hungry].slice(0, VIEWED_AT_ONCE);
      for (const owned of some) {
        this.hungry.delete(owned);
        owned.hungry = false;
        owned.busy = 'filling';
      }
      try {
        await this.stalls.during(() => this.refillSome(some));
      } catch (error) {
        this.log[isDatabaseUnavailable(error) ? 'warn' : 'error'](
          `lanes cannot be filled: ${messageOf(error)}`,
        );
        for (const owned of some) this.hungry.add(owned);
        await wait(DATABASE_UNAVAILABLE_MS);
      } finally {
        for (const owned of some) {
          owned.busy = undefined;
          owned.settled = undefined;
        }
      }
    }
  }

  private async refillSome(some: Owned[]): Promise<void> {
    const open: Owned[] = [];
    for (const owned of await this.view(some)) if (await this.isOpen(owned)) open.push(owned);
    const room = this.roomOfLane();
    const wanting = open.filter(({ lane, leaving }) => lane.known < room && !leaving);
    if (wanting.length === 0) return;
    const wanted = wanting.map((owned) => {
      // Whatever came late, behind the last that is known, is seen when there is nothing else.
      if (isIdle(owned)) owned.after = 0;
      owned.settled = new Set();
      const { id: subscriptionId, after, held } = owned;
      return { subscriptionId, after, room, skip: Math.min(held.size, 2 * KNOWN.ofLane) };
    });
    const taken = await this.pending.take(wanted);
    const asked = wanting.filter(({ redelivery }) => redelivery);
    if (asked.length > 0) {
      taken.push(...(await this.pending.takeRedeliveries(asked.map(({ id }) => id))));
    }
    await this.place(wanting, taken, room);
  }

  private roomOfLane(): number {
    const share = Math.floor(KNOWN.most / Math.max(1, this.lanes.size));
    return Math.max(KNOWN.leastOfLane, Math.min(KNOWN.ofLane, share));
  }

  private async view(some: Owned[]): Promise<Owned[]> {
    const unseen = some.filter(({ ending }) => ending === 'unseen');
    const views = new Map(
      (await this.leases.views(some.map(({ id }) => id))).map((view) => [
        view.subscriptionId,
        view,
      ]),
    );
    for (const owned of unseen) {
      if (owned.ending !== 'unseen') continue;
      // Taken while the end was being recorded.
      this.drop(owned, owned.lane.clear());
      owned.ending = 'no';
    }
    return some.filter((owned) => {
      const view = views.get(owned.id);
      if (view) this.show(owned, view);
      else {
        this.metrics.lostLane();
        this.lose(owned);
      }
      return view !== undefined;
    });
  }

  private show(owned: Owned, { planned, redelivery, target }: LaneView): void {
    owned.planned = planned;
    owned.redelivery = redelivery;
    owned.target = target;
    owned.viewedAt = performance.now();
  }

  /** Whether anything of it may be sent. What may not be is put away: failed, or left for a resume. */
  private async isOpen(owned: Owned): Promise<boolean> {
    const { id, target, lane } = owned;
    if (owned.ending !== 'no') return false;
    owned.hold = 'none';
    if (target?.enabled) return true;
    this.drop(owned, lane.clear());
    lane.more = false;
    if (target?.disabledReason === 'disabled_by_user') {
      owned.hold = 'parked';
      return false;
    }
    // Gone, or disabled by what went wrong: what is pending is over.
    await this.giveUp(id, 'infinity');
    if (target) owned.hold = 'parked';
    else if (isIdle(owned)) {
      await this.leases.forget(id, owned.planned);
      this.lose(owned);
    }
    return false;
  }

  private async giveUp(subscriptionId: number, before: Date | 'infinity'): Promise<void> {
    for (let more = true; more && !this.stopping;) {
      more = await this.pending.giveUp(subscriptionId, before);
    }
  }

  private async place(wanting: Owned[], taken: Delivery[], room: number): Promise<void> {
    const fresh: Delivery[] = [];
    const firsts = new Map<Owned, number>();
    const repeated = new Map<Owned, number>();
    const outdated = new Map<Owned, Date>();
    for (const delivery of taken) {
      const owned = this.lanes.get(delivery.subscriptionId);
      if (!owned) continue;
      if (delivery.manual) {
        if (!owned.heldManual.has(delivery.redeliveryId)) fresh.push(delivery);
        continue;
      }
      const counts = delivery.tries === 0 ? firsts : repeated;
      counts.set(owned, (counts.get(owned) ?? 0) + 1);
      if (delivery.tries === 0) owned.after = Math.max(owned.after, delivery.id);
      if (owned.held.has(delivery.id) || owned.settled?.has(delivery.id)) continue;
      const before = owned.target?.giveUpBefore;
      if (before && delivery.createdAt < before) outdated.set(owned, before);
      else fresh.push(delivery);
    }
    const now = performance.now();
    const texts = await this.bodies.textsOf(fresh.map(eventOf));
    const byLane = new Map<Owned, Known[]>();
    for (const delivery of fresh) {
      const owned = this.lanes.get(delivery.subscriptionId);
      if (!owned) continue;
      const body = texts.get(delivery.eventSeq) ?? 'unknown';
      if (body === 'unknown') {
        owned.hold = 'trouble';
        continue;
      }
      hold(owned, delivery);
      const known = byLane.get(owned);
      // One object, not a copy: there are thousands a second of these.
      const one = Object.assign(delivery, { body, readAt: now });
      if (known) known.push(one);
      else byLane.set(owned, [one]);
    }
    for (const [owned, deliveries] of byLane) {
      this.known += deliveries.length;
      owned.lane.add(deliveries);
    }
    for (const owned of wanting) {
      const before = outdated.get(owned);
      if (before) await this.giveUp(owned.id, before);
      owned.lane.more =
        before !== undefined ||
        (firsts.get(owned) ?? 0) >= room ||
        (repeated.get(owned) ?? 0) >= room + owned.held.size;
      if (owned.lane.known > 0) this.rings[owned.lane.pace].add(owned);
      else if (owned.lane.more) this.refillSoon(owned);
    }
    this.pump();
  }

  /** One delivery of each lane in turn, while there are slots. */
  private pump(): void {
    if (this.stopping || this.unrecorded >= UNRECORDED || !this.isLeaseTrusted()) return;
    this.pumpRing('fast');
    this.pumpRing('slow');
    this.pumpRing('probe');
  }

  private pumpRing(pace: Pace): void {
    const ring = this.rings[pace];
    for (const owned of ring) {
      if (this.taken[pace] >= SLOTS[pace]) return;
      ring.delete(owned);
      if (owned.lost || owned.leaving || owned.ending !== 'no' || owned.hold === 'parked') continue;
      const delivery = owned.lane.next();
      if (!delivery) continue;
      // A set is walked in the order of insertion: it comes again after the others.
      ring.add(owned);
      this.known--;
      this.start(owned, delivery, pace);
    }
  }

  private start(owned: Owned, delivery: Known, pace: Pace): void {
    const flight: Flight = { owned, delivery, pace, startedAt: performance.now() };
    this.taken[pace]++;
    this.inFlight.add(flight);
    owned.unrecorded++;
    if (owned.lane.more && owned.lane.known < this.roomOfLane() / 2 && !owned.hungry) {
      this.refillSoon(owned);
    }
    void this.deliver(flight);
  }

  private async deliver(flight: Flight): Promise<void> {
    const { owned, delivery } = flight;
    let attempted: Attempted | undefined;
    this.metrics.begins(delivery, flight.pace);
    try {
      attempted = await this.attempt(owned, delivery);
    } catch (error) {
      this.log.warn(`a delivery cannot be made: ${messageOf(error)}`, aboutOf(delivery));
    }
    const milliseconds = performance.now() - flight.startedAt;
    this.inFlight.delete(flight);
    this.taken[flight.pace]--;
    if (attempted === undefined) {
      owned.lane.letGo(delivery);
      owned.hold = 'trouble';
      this.settle(owned, delivery);
      return;
    }
    this.unrecorded++;
    this.metrics.made(delivery, attempted.outcome, milliseconds);
    owned.lane.done(delivery, signalOf(attempted), milliseconds, this.mayGrow());
    const next = this.judge(owned, delivery, attempted);
    if (owned.lane.known > 0) this.rings[owned.lane.pace].add(owned);
    this.pump();
    await this.record(owned, delivery, attempted, next);
  }

  private async attempt(owned: Owned, delivery: Known): Promise<Attempted | undefined> {
    let { body } = delivery;
    if (performance.now() - delivery.readAt > TEXT_KEPT_MS) {
      // The person may have been erased while it waited.
      const texts = await this.bodies.textsOf([eventOf(delivery)]);
      body = texts.get(delivery.eventSeq) ?? 'unknown';
    }
    const { target } = owned;
    if (body === 'unknown' || !target) return undefined;
    if (body === 'erased') {
      return { outcome: { kind: 'erased' }, at: new Date(), durationMs: 0, excerpt: null };
    }
    const attempt = {
      url: target.url,
      secret: target.secret,
      ...(target.previousSecret !== undefined && { previousSecret: target.previousSecret }),
      eventId: delivery.eventId,
      type: delivery.type,
      body: bodyOf(body, delivery.payloadFormat),
    };
    return traced('webhook attempt', {}, (span) => this.sendTraced(span, delivery, attempt), {
      kind: SpanKind.CLIENT,
      // Whatever woke this lane has nothing to do with it.
      within: ROOT_CONTEXT,
    });
  }

  private async sendTraced(span: Span, delivery: Known, attempt: Attempt): Promise<Attempted> {
    const attempted = await this.client.send(attempt);
    if (!span.isRecording()) return attempted;
    const { outcome } = attempted;
    span.setAttributes({
      'inkpad.event_id': delivery.eventId,
      'inkpad.webhook_delivery_id': delivery.id,
      'inkpad.webhook_subscription_id': delivery.subscriptionId,
      'inkpad.attempt': delivery.tries + 1,
      // Of the URL no more than this: paths and queries may hold secrets.
      'server.address': new URL(attempt.url).hostname,
      ...(outcome.kind === 'answered' && { 'http.response.status_code': outcome.status }),
      'inkpad.result': attemptResult(outcome),
    });
    if (!isSuccess(outcome)) span.setStatus({ code: SpanStatusCode.ERROR });
    return attempted;
  }

  private countLanes(): Record<Pace, number> {
    const counts = { fast: 0, slow: 0, probe: 0 };
    for (const { lane } of this.lanes.values()) counts[lane.pace]++;
    return counts;
  }

  private judge(owned: Owned, delivery: Delivery, attempted: Attempted): Next {
    const { target } = owned;
    const subscription = { failingSince: target?.failingSince ?? null };
    const now = doneAt(attempted);
    const { webhookTimeScale } = this.config;
    let next: Next;
    if (delivery.manual) {
      const manual = afterManualAttempt(attempted.outcome, subscription, now);
      const status = manual.delivered ? 'delivered' : 'failed';
      next = { delivery: { status }, subscription: manual.subscription };
    } else {
      next = afterAttempt(
        delivery,
        subscription,
        attempted.outcome,
        now,
        Math.random(),
        webhookTimeScale,
      );
    }
    if (endsSubscription(next.subscription)) {
      // Nothing more goes there; what is pending is cleared away once this is recorded.
      owned.ending = 'unrecorded';
      this.drop(owned, owned.lane.clear());
    } else if (target) target.failingSince = next.subscription.failingSince;
    return next;
  }

  private async record(
    owned: Owned,
    delivery: Delivery,
    attempted: Attempted,
    next: Next,
  ): Promise<void> {
    for (let refusals = 0; ;) {
      try {
        await this.results.record({ delivery, attempted, next });
        this.metrics.followed(delivery, attempted.outcome, next);
        break;
      } catch (error) {
        if (!isDatabaseUnavailable(error) && ++refusals === RECORD_TRIES) {
          // It is sent again later, under the same id.
          this.log.error(`an attempt cannot be recorded: ${messageOf(error)}`, aboutOf(delivery));
          owned.hold = 'trouble';
          break;
        }
        await wait(DATABASE_UNAVAILABLE_MS);
      }
    }
    if (this.unrecorded-- === UNRECORDED) this.pump();
    if (next.delivery.status === 'pending' && !delivery.manual) {
      owned.nextDue = Math.min(
        owned.nextDue,
        performance.now() + next.delivery.nextAttemptAt.getTime() - Date.now(),
      );
    }
    this.settle(owned, delivery);
    if (endsSubscription(next.subscription)) {
      owned.ending = 'unseen';
      this.refillSoon(owned);
    }
  }

  /** Nothing of this delivery is under way any more. */
  private settle(owned: Owned, delivery: Delivery): void {
    owned.unrecorded--;
    unhold(owned, delivery);
    const present = this.lanes.get(owned.id);
    present?.settled?.add(delivery.id);
    if (!isIdle(owned)) return;
    owned.emptySince = performance.now();
    if (this.left.get(owned.id) === owned) this.left.delete(owned.id);
  }

  /** Taken, and not sent after all. */
  private drop(owned: Owned, dropped: Known[]): void {
    this.known -= dropped.length;
    for (const delivery of dropped) unhold(owned, delivery);
    owned.after = 0;
  }

  private lose(owned: Owned): void {
    owned.lost = true;
    this.drop(owned, owned.lane.clear());
    this.hungry.delete(owned);
    for (const ring of Object.values(this.rings)) ring.delete(owned);
    if (this.lanes.get(owned.id) === owned) this.lanes.delete(owned.id);
    if (!isIdle(owned)) this.left.set(owned.id, owned);
  }

  private mayGrow(): boolean {
    return this.busyShare < (this.inFlight.size < MANY ? BUSY.few : BUSY.many);
  }

  private isLeaseTrusted(): boolean {
    return performance.now() - this.renewedAt < LEASE_TRUSTED_MS;
  }

  private tick(): void {
    const now = performance.now();
    const utilisation = performance.eventLoopUtilization(this.utilisation);
    this.utilisation = performance.eventLoopUtilization();
    this.busyShare = utilisation.utilization;
    for (const flight of this.inFlight) {
      if (now - flight.startedAt < SLOW_MS) break;
      if (flight.pace !== 'fast') continue;
      this.taken.fast--;
      this.taken.slow++;
      flight.pace = 'slow';
    }
    if (this.stopping) return;
    const letGo: Owned[] = [];
    for (const owned of this.lanes.values()) {
      if (owned.nextDue <= now) {
        owned.nextDue = Infinity;
        this.refillSoon(owned);
      } else if (owned.lane.known > 0) {
        if (now - owned.viewedAt > VIEW_KEPT_MS) this.refillSoon(owned);
        if (owned.leaving) this.drop(owned, owned.lane.clear());
        else this.rings[owned.lane.pace].add(owned);
      } else if (owned.busy !== undefined) {
        continue;
      } else if (isIdle(owned) && !owned.hungry && !owned.lane.more) {
        if (owned.hold !== 'none' || owned.leaving || now - owned.emptySince > LINGER_MS) {
          letGo.push(owned);
        }
      } else if (owned.leaving && isIdle(owned)) letGo.push(owned);
    }
    this.pump();
    if (letGo.length > 0) {
      this.release(letGo).catch((error: unknown) =>
        this.log.warn(`lanes cannot be let go of: ${messageOf(error)}`),
      );
    }
  }

  private async release(lanes: Owned[]): Promise<void> {
    if (lanes.length === 0) return;
    const released = await this.released(lanes);
    for (const owned of lanes) {
      if (released.has(owned.id)) this.lose(owned);
      else if (this.stopping) await this.lookAgain(owned);
      else this.refillSoon(owned);
    }
  }

  private async released(lanes: Owned[]): Promise<Set<number>> {
    for (const owned of lanes) owned.busy = 'releasing';
    try {
      return await this.leases.release(
        lanes.map((owned) => ({
          subscriptionId: owned.id,
          planned: owned.planned,
          pace: owned.lane.pace,
          hold: owned.hold,
        })),
      );
    } finally {
      for (const owned of lanes) owned.busy = undefined;
    }
  }

  /** While stopping nothing is filled any more, but what was added meanwhile has to be known. */
  private async lookAgain(owned: Owned): Promise<void> {
    await this.view([owned]);
  }

  private async renewLoop(signal: AbortSignal): Promise<void> {
    let away = false;
    while (!signal.aborted) {
      try {
        const asked = performance.now();
        const ours = await this.stalls.during(() => this.leases.renew());
        this.renewedAt = asked;
        for (const owned of this.lanes.values()) if (!ours.has(owned.id)) this.refillSoon(owned);
        await this.share();
        away = false;
      } catch (error) {
        if (!away) this.log.warn(`leases cannot be renewed: ${messageOf(error)}`);
        away = true;
      }
      await pause(away ? DATABASE_UNAVAILABLE_MS : RENEW_EVERY_MS, signal);
    }
  }

  /** With other dispatchers there, nobody keeps much more than their share of the lanes. */
  private async share(): Promise<void> {
    const { others, owned: all } = await this.leases.present();
    this.othersThere = others;
    if (others === 0) return;
    const share = Math.ceil(all / (others + 1));
    let surplus = this.lanes.size - share - Math.ceil(share / 8) - 1;
    for (const owned of this.lanes.values()) {
      if (surplus-- <= 0) break;
      owned.leaving = true;
    }
  }
}

type Flight = { owned: Owned; delivery: Known; pace: Pace; startedAt: number };

/** Nothing of it is known, in flight or unrecorded. */
function isIdle({ lane, unrecorded }: Owned): boolean {
  return lane.known === 0 && lane.inFlight === 0 && unrecorded === 0;
}

function hold({ held, heldManual }: Owned, { id, manual, redeliveryId }: Delivery): void {
  if (manual) heldManual.add(redeliveryId);
  else held.add(id);
}

function unhold({ held, heldManual }: Owned, { id, manual, redeliveryId }: Delivery): void {
  if (manual) heldManual.delete(redeliveryId);
  else held.delete(id);
}

function eventOf({ eventSeq: seq, eventId, accountId, customerId }: Delivery): PublicEventRef {
  return { seq, eventId, accountId, customerId };
}

/** For the log. */
function aboutOf({ id, subscriptionId, accountId, eventId }: Delivery): Record<string, unknown> {
  return {
    event_id: eventId,
    delivery_id: id,
    subscription_id: subscriptionId,
    account_id: accountId,
  };
}

function signalOf({ outcome }: Attempted): Signal {
  if (isSuccess(outcome)) return 'success';
  if (outcome.kind === 'answered') {
    return [429, 502, 503, 504].includes(outcome.status) ? 'overload' : 'refusal';
  }
  return outcome.kind === 'failed' ? 'silence' : 'refusal';
}
