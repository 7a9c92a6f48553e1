import { Injectable, Logger } from '@nestjs/common';
import { performance } from 'node:perf_hooks';
import { setTimeout as wait } from 'node:timers/promises';
import { Config } from '#configuration/config.js';
import { getErrorMessage } from '#kernel/errors.js';
import { pause } from '#kernel/pause.js';
import { StallDetector } from '#kernel/stall-detector.js';
import { DATABASE_RETRY_MS } from '#database/connection.js';
import { Notifications } from '#database/notifications.js';
import { WORK_CHANNEL, WorkHints } from '#subscriptions/work-hints.service.js';
import { DeliveryAttempts } from './delivery-attempts.service.js';
import { LaneFiller } from './lane-filler.service.js';
import { LaneLeases } from './lane-leases.service.js';
import type { Pace } from './delivery-lane.js';
import type { LaneView } from './owned-lane.js';
import { OwnedLanes, type Known, type Lane } from './owned-lanes.service.js';

const CLAIM = 32;
/** The most lanes that one process owns; when more wait, the oldest are released to make room. */
const OWNED = { most: 2_000, makeRoom: 64 };
const POLL_MS = 500;
const TICK_MS = 100;
const LINGER_MS = 1_000;
const VIEW_KEPT_MS = 1_000;
const RENEW_EVERY_MS = 5_000;

/** Owns lanes under a lease, for as long as there is work in them, and shares them with other dispatchers. */
@Injectable()
export class DeliveryWorker {
  private readonly log = new Logger('webhook deliveries');
  private woken = false;
  private wakeUp: () => void = () => undefined;
  private othersThere = 0;

  constructor(
    private readonly lanes: OwnedLanes,
    private readonly leases: LaneLeases,
    private readonly filler: LaneFiller,
    private readonly attempts: DeliveryAttempts,
    private readonly stalls: StallDetector,
    private readonly hints: WorkHints,
    private readonly config: Config,
  ) {}

  /** Whether no other dispatcher needs to be told about new work. */
  get isAlone(): boolean {
    return this.othersThere === 0;
  }

  /**
   * Who may claim lanes for this dispatcher without asking it; null: nobody, because the others are to get their share or
   * it owns enough.
   */
  get claimant(): string | null {
    const { stopping, isLeaseTrusted, size } = this.lanes;
    return this.isAlone && !stopping && isLeaseTrusted && size < OWNED.most ? this.leases.me : null;
  }

  /**
   * A lane belongs to this dispatcher since these were planned in it. If it was claimed with them and nothing else is
   * pending in it, they are sent without being read from the queue.
   * @param all undefined when they are not all that is pending, or cannot be sent yet
   * @returns whether it was not owned before
   */
  take(view: LaneView, pace: Pace, all: Known[] | undefined): boolean {
    const owned = this.lanes.get(view.subscriptionId);
    if (owned) this.lanes.askToFill(owned);
    if (owned || !all || view.redelivery || !view.target?.enabled) {
      this.lanes.own(view.subscriptionId, pace);
    } else {
      this.lanes.take(view, pace, all);
      this.attempts.pump();
    }
    return !owned;
  }

  /** Tells this dispatcher, and the others if there are any, that these subscriptions may have work. */
  announce(subscriptionIds: readonly number[]): void {
    if (subscriptionIds.length === 0) return;
    this.wake(new Set(subscriptionIds));
    if (!this.isAlone) this.hints.wake();
  }

  /** These subscriptions may have work, some of them in lanes that this process already owns. */
  wake(subscriptionIds: Iterable<number>): void {
    for (const id of subscriptionIds) {
      const lane = this.lanes.get(id);
      if (lane) this.lanes.askToFill(lane);
      else this.claimSoon();
    }
  }

  /** Runs until the signal aborts; call `finish` for what is in flight then. */
  async run(signal: AbortSignal): Promise<void> {
    signal.addEventListener(
      'abort',
      () => {
        this.lanes.stopping = true;
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
   * Waits for what is in flight, and releases lanes as they become idle.
   * @returns how many attempts were left unfinished; they will be made again
   */
  async finish(milliseconds: number): Promise<number> {
    this.lanes.stopping = true;
    const deadline = performance.now() + milliseconds;
    await this.filler.finish();
    for (;;) {
      for (const lane of this.lanes.all) this.lanes.drop(lane);
      const idle = [...this.lanes.all].filter(({ isIdle }) => isIdle);
      const late = performance.now() > deadline;
      try {
        await this.release(late ? [...this.lanes.all] : idle);
      } catch (error) {
        this.log.warn(`lanes could not be released at the stop: ${getErrorMessage(error)}`);
        await wait(Math.min(DATABASE_RETRY_MS, milliseconds));
      }
      if (this.lanes.size === 0 || late) break;
      await wait(20);
    }
    await this.leases.leave().catch((error: unknown) => this.log.debug(getErrorMessage(error)));
    return this.lanes.slots.inFlight;
  }

  /** The payload names one subscription, or is empty for any. */
  private onHint(payload: string): void {
    if (payload !== '') this.wake([Number(payload)]);
    else {
      this.wake(this.lanes.ids);
      this.claimSoon();
    }
  }

  private claimSoon(): void {
    this.woken = true;
    this.wakeUp();
  }

  private async claimLoop(signal: AbortSignal): Promise<void> {
    for (let unavailable = false; !signal.aborted;) {
      this.woken = false;
      try {
        const claimed = await this.stalls.watch(() => this.claim());
        unavailable = false;
        if (!claimed) await this.idle();
      } catch (error) {
        if (!unavailable) this.log.warn(`lanes could not be claimed: ${getErrorMessage(error)}`);
        unavailable = true;
        await wait(DATABASE_RETRY_MS);
      }
    }
  }

  private async claim(): Promise<boolean> {
    if (!this.lanes.isLeaseTrusted) return false;
    if (this.lanes.size >= OWNED.most) {
      let room = OWNED.makeRoom;
      for (const lane of this.lanes.all) if (room-- > 0) lane.leaving = true;
      return false;
    }
    const claimed = await this.leases.claim(CLAIM);
    for (const { subscriptionId, pace } of claimed) this.lanes.own(subscriptionId, pace);
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

  private tick(): void {
    const now = performance.now();
    this.attempts.tick(now);
    if (this.lanes.stopping) return;
    const released = [...this.lanes.all].filter((lane) => this.look(lane, now));
    this.attempts.pump();
    if (released.length > 0) {
      this.release(released).catch((error: unknown) =>
        this.log.warn(`lanes could not be released: ${getErrorMessage(error)}`),
      );
    }
  }

  /** @returns whether the lane is to be released */
  private look(lane: Lane, now: number): boolean {
    if (lane.nextDue <= now) {
      lane.nextDue = Infinity;
      this.lanes.askToFill(lane);
      return false;
    }
    if (lane.lane.known === 0) return lane.mayBeReleased(now, LINGER_MS);
    if (lane.isViewOld(now, VIEW_KEPT_MS)) this.lanes.askToFill(lane);
    if (lane.leaving) this.lanes.drop(lane);
    else this.lanes.ready(lane);
    return false;
  }

  private async release(lanes: Lane[]): Promise<void> {
    if (lanes.length === 0) return;
    const released = await this.released(lanes);
    for (const lane of lanes) {
      if (released.has(lane.id)) this.lanes.released(lane);
      // While stopping nothing is filled any more, but what was added meanwhile has to be known.
      else if (this.lanes.stopping) await this.filler.view([lane]);
      else this.lanes.askToFill(lane);
    }
  }

  private async released(lanes: Lane[]): Promise<Set<number>> {
    for (const lane of lanes) {
      lane.busy = 'releasing';
      lane.claimedAgain = false;
    }
    try {
      return await this.leases.release(
        lanes.map((lane) => ({
          subscriptionId: lane.id,
          planned: lane.planned,
          pace: lane.lane.pace,
          hold: lane.hold,
        })),
      );
    } finally {
      for (const lane of lanes) lane.busy = undefined;
    }
  }

  private async renewLoop(signal: AbortSignal): Promise<void> {
    let unavailable = false;
    while (!signal.aborted) {
      try {
        const asked = performance.now();
        const ours = await this.stalls.watch(() => this.leases.renew());
        // Of a lane that was claimed by a statement whose answer was lost nobody else would ever hear.
        for (const id of ours) if (!this.lanes.get(id)) this.lanes.own(id, 'fast');
        // Before the others may send again: what somebody else has taken must not be sent with them.
        for (const lane of this.lanes.all) {
          if (ours.has(lane.id)) continue;
          lane.doubted = true;
          this.lanes.askToFill(lane);
        }
        this.lanes.renewed(asked);
        await this.share();
        unavailable = false;
      } catch (error) {
        if (!unavailable) this.log.warn(`leases could not be renewed: ${getErrorMessage(error)}`);
        unavailable = true;
      }
      await pause(unavailable ? DATABASE_RETRY_MS : RENEW_EVERY_MS, signal);
    }
  }

  /** With other dispatchers running, nobody keeps much more than their share of the lanes. */
  private async share(): Promise<void> {
    const { others, owned } = await this.leases.present();
    this.othersThere = others;
    if (others === 0) return;
    const share = Math.ceil(owned / (others + 1));
    let surplus = this.lanes.size - share - Math.ceil(share / 8) - 1;
    for (const lane of this.lanes.all) {
      if (surplus-- <= 0) break;
      lane.leaving = true;
    }
  }
}
