import type { QueuedDelivery, QueueView, Target } from './delivery.js';

/** Which group of slots a queue uses, so that bad receivers delay only each other. */
export type Tier = 'fast' | 'slow' | 'probe';

/** How an attempt went, as far as it affects the tier. */
export type Signal = 'success' | 'error' | 'overload' | 'silence';

/** Deliveries are sent in the first two states only. */
export type QueueState =
  | 'active'
  /** A delivery could not be processed: once the others are sent, the queue backs off. */
  | 'backing-off'
  /** The subscription is disabled: its deliveries wait until that changes. */
  | 'paused'
  /** The subscription has ended, and what is pending is being failed. */
  | 'giving-up'
  /** The subscription has ended, and everything that was pending has been failed. */
  | 'given-up'
  | Interruption;

/** Each outlasts those before it. */
const INTERRUPTIONS = [
  /** Its lease was not renewed with the others: it may belong to somebody else, until it is read again. */
  'uncertain',
  /** Something could not be read or sent, or an end is recorded: all of it must be read again, so that the order holds. */
  'rereading',
  /** An attempt has ended the subscription, which is not recorded yet. */
  'ending',
  /** To be released as soon as nothing is in flight. */
  'draining',
  /** Another dispatcher has it, or nobody. */
  'lost',
] as const;
export type Interruption = (typeof INTERRUPTIONS)[number];

/** A statement about the queue that is running. `reclaimed`: being released, and claimed again meanwhile. */
export type QueueOperation = 'loading' | 'failing' | 'releasing' | 'reclaimed';

/** @property after the last first attempt that is already known @property state as of the request */
export type LoadRequest = {
  subscriptionId: number;
  after: number;
  room: number;
  skip: number;
  state: QueueState;
};

const MAX_CONCURRENCY = 16;
const SLOW_MS = 2_000;
/** If the backlog would take longer than this, one more attempt at once is allowed. */
const MAX_BACKLOG_MS = 1_000;
const SILENCES_BEFORE_PROBE = 5;
const LATENCY_WEIGHT = 0.2;

/**
 * A subscription's queue while this process leases it: which deliveries are known, in flight or not recorded, which is
 * sent next, how many at once, and what keeps it from being sent or released. Reads no clock: times and durations are
 * milliseconds that are passed in.
 */
export class DeliveryQueue<D extends QueuedDelivery> {
  operation: QueueOperation | undefined;
  /** It waits for a slot to send in. */
  isReady = false;
  target: Target | undefined;
  enqueuedCount = -1;
  /** Somebody has asked for a redelivery. */
  hasRedelivery = false;
  /** The database holds more than is known here. */
  hasMore = true;
  /** When the earliest retry that this process has enqueued is due. */
  nextDueAt = Infinity;
  private currentState: QueueState = 'active';
  private viewedAt = 0;
  private emptySince: number;
  /** The last first attempt that is known. */
  private after = 0;
  /** The most due retries that were requested. */
  private maxDueRetries = 0;

  /** In the order of their ids, which is that of the events. */
  private firstAttempts: D[] = [];
  private retries: D[] = [];
  private choiceCount = 0;
  private inFlight = 0;
  /** Attempts made, or given up, and those in flight. */
  private unrecordedCount = 0;
  /** The first attempt in flight about each customer and each stream, by its key (ADR-0062). */
  private readonly busy: Map<number | string, number>;
  /** Known, in flight or not recorded: the database still shows these as due. */
  private readonly heldKeys: Set<number>;
  /** Recorded since a load was requested: its result may still show these as due. */
  private recordedKeys: Set<number> | undefined;

  private maxConcurrency = 1;
  private averageLatencyMs = 0;
  private silenceCount = 0;

  /** @param previous the same queue, lost earlier with attempts in flight, which must be neither made twice nor overtaken */
  constructor(
    readonly id: number,
    public tier: Tier,
    now: number,
    previous?: DeliveryQueue<D>,
  ) {
    this.emptySince = now;
    this.busy = new Map(previous?.busy);
    this.heldKeys = new Set(previous?.heldKeys);
  }

  get state(): QueueState {
    return this.currentState;
  }

  get canSend(): boolean {
    return this.currentState === 'active' || this.currentState === 'backing-off';
  }

  get concurrency(): number {
    return this.tier === 'probe' ? 1 : this.maxConcurrency;
  }

  /** Deliveries that are known here and not begun. */
  get waitingCount(): number {
    return this.retries.length + this.firstAttempts.length;
  }

  /** Nothing of it is known, in flight or unrecorded. */
  get isIdle(): boolean {
    return this.waitingCount === 0 && this.unrecordedCount === 0;
  }

  /** Attempts made here, or before it was lost, are not recorded yet. */
  get hasUnrecorded(): boolean {
    return this.heldKeys.size > this.waitingCount;
  }

  backOff(): void {
    if (this.currentState === 'active') this.currentState = 'backing-off';
  }

  /** Drops what has not begun, except while only the lease is uncertain. */
  interrupt(by: Interruption): void {
    const interruptions: readonly QueueState[] = INTERRUPTIONS;
    if (interruptions.indexOf(by) > interruptions.indexOf(this.currentState))
      this.currentState = by;
    if (by !== 'uncertain') this.drop();
  }

  /** Marks the end as recorded: every view that is read from now on shows it. */
  markEndRecorded(): void {
    if (this.currentState === 'ending') this.currentState = 'rereading';
  }

  /** Describes what to read of the queue. From now on, recorded results are remembered until `endLoad`. */
  requestLoad(room: number, maxHeld: number): LoadRequest {
    // Nothing of a queue that is reread is known, so nothing of it is sent before the result is there.
    const isReread = this.currentState === 'rereading';
    if (isReread || this.currentState === 'backing-off') this.currentState = 'active';
    // A delivery that was added late, with an id below `after`, is only found by reading from the beginning.
    if (isReread || this.isIdle) this.after = 0;
    this.recordedKeys = new Set();
    const { id: subscriptionId, after, currentState: state } = this;
    if (this.waitingCount >= room || state === 'draining' || state === 'ending') {
      return { subscriptionId, after, room: 0, skip: 0, state };
    }
    const skip = Math.min(this.heldKeys.size, maxHeld);
    this.maxDueRetries = room + skip;
    return { subscriptionId, after, room, skip, state };
  }

  /** Whether what was read for a request still describes the queue. */
  isAsOf(request: LoadRequest): boolean {
    const { currentState: state } = this;
    return state === request.state || (state === 'backing-off' && request.state === 'active');
  }

  applyView({ enqueuedCount, hasRedelivery, target }: QueueView, now: number): void {
    this.enqueuedCount = enqueuedCount;
    this.hasRedelivery = hasRedelivery;
    this.target = target;
    this.viewedAt = now;
  }

  /** Its subscription is enabled, and this process has it. */
  activate(): void {
    if (this.currentState !== 'backing-off') this.currentState = 'active';
  }

  suspend(state: 'paused' | 'giving-up'): void {
    this.currentState = state;
    this.hasMore = false;
    this.drop();
  }

  /** A slice of what is pending was failed. @param isEmpty whether nothing pending is left */
  endFailing(isEmpty: boolean): void {
    this.operation = undefined;
    if (isEmpty && this.currentState === 'giving-up') this.currentState = 'given-up';
  }

  /** Tells whether a delivery that the database shows is new here: neither in flight nor just recorded. */
  isNew(delivery: D): boolean {
    if (isFirstAttempt(delivery)) this.after = Math.max(this.after, delivery.id);
    const key = toKey(delivery);
    return !this.heldKeys.has(key) && this.recordedKeys?.has(key) !== true;
  }

  /** The moment before which deliveries are too old to be sent, if this one is; otherwise undefined. */
  findCutoff({ manual, createdAt }: D): Date | undefined {
    const before = this.target?.giveUpBefore;
    return !manual && before && createdAt < before ? before : undefined;
  }

  add(deliveries: D[]): void {
    for (const delivery of deliveries) {
      this.heldKeys.add(toKey(delivery));
      (isFirstAttempt(delivery) ? this.firstAttempts : this.retries).push(delivery);
    }
  }

  /** @param counts how many first attempts and how many due retries the database showed */
  updateHasMore(
    counts: { firsts: number; retries: number },
    room: number,
    hasOutdated: boolean,
  ): void {
    // Where all of these are held, asking again at once would bring the same.
    const isMore = counts.retries >= this.maxDueRetries && this.waitingCount > 0;
    this.hasMore = hasOutdated || counts.firsts >= room || isMore;
  }

  endLoad(): void {
    if (this.operation === 'loading') this.operation = undefined;
    this.recordedKeys = undefined;
  }

  /** The database holds more, and only a little of it is known. */
  isHalfEmpty(room: number): boolean {
    return this.hasMore && this.waitingCount < room / 2;
  }

  /** Starts the next delivery and returns it; undefined when none may be sent. */
  startNext(): D | undefined {
    if (!this.canSend || this.inFlight >= this.concurrency) return undefined;
    const delivery =
      this.choiceCount++ % 2 === 0
        ? (this.retries.shift() ?? this.takeFirstAttempt())
        : (this.takeFirstAttempt() ?? this.retries.shift());
    if (!delivery) return undefined;
    this.inFlight++;
    this.unrecordedCount++;
    return delivery;
  }

  /**
   * The attempt is over. The next first attempt about its customer may go now: the order requires that the one
   * before has got a response or has failed, not that this is recorded.
   * @param canGrow whether the process has capacity for more attempts at once
   */
  finishAttempt(delivery: D, signal: Signal, milliseconds: number, canGrow: boolean): void {
    this.skip(delivery);
    this.averageLatencyMs =
      this.averageLatencyMs === 0
        ? milliseconds
        : this.averageLatencyMs + LATENCY_WEIGHT * (milliseconds - this.averageLatencyMs);
    this.silenceCount = signal === 'silence' ? this.silenceCount + 1 : 0;
    if (signal === 'overload' || signal === 'silence')
      this.maxConcurrency = Math.max(1, this.maxConcurrency >> 1);
    if (signal === 'success' && canGrow && this.isBehind()) {
      this.maxConcurrency = Math.min(MAX_CONCURRENCY, this.maxConcurrency + 1);
    }
    if (this.silenceCount >= SILENCES_BEFORE_PROBE) this.tier = 'probe';
    else this.tier = signal === 'silence' || this.averageLatencyMs > SLOW_MS ? 'slow' : 'fast';
  }

  /** The delivery is over without an attempt. */
  skip(delivery: D): void {
    this.inFlight--;
    this.endOrder(delivery);
  }

  /** Removes a delivery whose result is recorded, or that has none. */
  remove(delivery: D, now: number): void {
    this.unrecordedCount--;
    this.removeInherited(delivery);
    if (this.isIdle) this.emptySince = now;
  }

  /** Removes one that was in flight before the queue was lost. */
  removeInherited(delivery: D): void {
    this.heldKeys.delete(toKey(delivery));
    this.recordedKeys?.add(toKey(delivery));
    this.endOrder(delivery);
  }

  private drop(): void {
    for (const delivery of [...this.retries, ...this.firstAttempts])
      this.heldKeys.delete(toKey(delivery));
    this.retries = [];
    this.firstAttempts = [];
    this.after = 0;
  }

  isViewStale(now: number, maxAgeMs: number): boolean {
    return now - this.viewedAt > maxAgeMs;
  }

  /** Nothing is in it, and nothing is being done with it. @param needsRefill whether it waits to be loaded */
  canBeReleased(now: number, lingerMs: number, needsRefill: boolean): boolean {
    if (this.operation !== undefined || !this.isIdle) return false;
    if (this.currentState === 'draining') return true;
    if (needsRefill || this.hasMore) return false;
    const isSuspended = this.currentState === 'paused' || this.currentState === 'backing-off';
    return isSuspended || now - this.emptySince > lingerMs;
  }

  /**
   * Takes the next first attempt, at most one at a time for each customer and each stream, in the order of the events. A
   * stream counts besides its customer because a merge gives a card another one. Events about nobody share one customer,
   * so a card comes before its rewards.
   */
  private takeFirstAttempt(): D | undefined {
    const waiting = new Set<number | string>();
    for (const [i, delivery] of this.firstAttempts.entries()) {
      const keys = getOrderKeys(delivery);
      if (keys.some((key) => this.busy.has(key) || waiting.has(key))) {
        for (const key of keys) waiting.add(key);
        continue;
      }
      this.firstAttempts.splice(i, 1);
      for (const key of keys) this.busy.set(key, toKey(delivery));
      return delivery;
    }
    return undefined;
  }

  private endOrder(delivery: D): void {
    for (const key of getOrderKeys(delivery)) {
      if (this.busy.get(key) === toKey(delivery)) this.busy.delete(key);
    }
  }

  private isBehind(): boolean {
    return (
      this.hasMore ||
      (this.waitingCount * this.averageLatencyMs) / this.maxConcurrency > MAX_BACKLOG_MS
    );
  }
}

function isFirstAttempt({ tries, manual }: QueuedDelivery): boolean {
  return tries === 0 && !manual;
}

function getOrderKeys({ customerId, stream }: QueuedDelivery): (number | string)[] {
  return [customerId, stream];
}

/** Redeliveries have ids of their own, which are made negative here. */
function toKey({ id, manual, redeliveryId }: QueuedDelivery): number {
  return manual ? -redeliveryId : id;
}
