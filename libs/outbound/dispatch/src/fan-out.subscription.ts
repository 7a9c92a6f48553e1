import { Injectable, Logger } from '@nestjs/common';
import { Pool } from 'pg';
import { getErrorMessage } from '#kernel/errors.js';
import { StallDetector } from '#kernel/stall-detector.js';
import { ROOT_CONTEXT, runInSpan } from '#kernel/tracing.js';
import { isDatabaseUnavailable } from '#database/connection.js';
import { LeaderLock } from '#database/leader-lock.js';
import { OvertakenError, readCheckpoint } from '#event-store/port/checkpoint.js';
import { EventStore, type Position, type StoredEvent } from '#event-store/port/event-store.js';
import { UnknownEventTypeError } from '#event-store/port/event-types.js';
import { followLog } from '#event-store/log/follow-log.js';
import { FAN_OUT_CHECKPOINT } from '#subscriptions/delivery-requests.service.js';
import { DeliveryWorker } from './delivery-worker.service.js';
import { DispatcherMaintenance } from './dispatcher-maintenance.service.js';
import { EventEnqueuer } from './event-enqueuer.service.js';
import { Replays } from './replays.service.js';

const LEADERSHIP = { name: 'webhook fan-out', lock: 727_001 };
const BATCH_SIZE = 500;

/**
 * Turns the log into deliveries, each exactly once: events and checkpoint are written in one transaction that compares
 * the checkpoint first. One process does this at a time. Its lock only saves the others the work; the comparison is
 * what makes it safe.
 */
@Injectable()
export class FanOut {
  private readonly log = new Logger('webhook fan-out');

  constructor(
    private readonly pool: Pool,
    private readonly eventStore: EventStore,
    private readonly enqueuer: EventEnqueuer,
    private readonly worker: DeliveryWorker,
    private readonly maintenance: DispatcherMaintenance,
    private readonly replays: Replays,
    private readonly stalls: StallDetector,
    private readonly lock: LeaderLock,
  ) {}

  /** Runs until the signal aborts, whatever happens to the database. */
  async run(signal: AbortSignal): Promise<void> {
    await this.lock.lead(LEADERSHIP, signal, (leading) => this.lead(leading));
  }

  private async lead(signal: AbortSignal): Promise<void> {
    const { maintenance, replays } = this;
    const steppedDown = new AbortController();
    const leading = AbortSignal.any([signal, steppedDown.signal]);
    const follow = this.follow(leading).finally(() => steppedDown.abort());
    await Promise.all([follow, maintenance.run(leading), replays.run(leading)]);
  }

  private async follow(signal: AbortSignal): Promise<void> {
    this.log.log('follows the log');
    const follower = {
      batch: BATCH_SIZE,
      readPosition: () => readCheckpoint(this.pool, FAN_OUT_CHECKPOINT),
      advance: async (from: Position, events: StoredEvent[], to: Position) => {
        await this.stalls.watch(() => this.advance(from, events, to));
      },
      // A single dispatcher goes on with the other tasks of a leader.
      shouldStepDown: () => !this.worker.isAlone,
    };
    await followLog(this.eventStore, follower, this.log, signal);
  }

  /** One failing event must delay only what comes after it, and the log must name it. */
  private async advance(from: Position, events: StoredEvent[], to: Position): Promise<void> {
    try {
      await this.enqueueBatch(from, events, to);
      return;
    } catch (error) {
      if (error instanceof OvertakenError || isDatabaseUnavailable(error)) throw error;
      if (error instanceof UnknownEventTypeError && events.length === 1) throw error;
      this.log.warn(
        `a batch of ${events.length} events failed and is repeated one by one: ${getErrorMessage(error)}`,
      );
    }
    let position = from;
    for (const event of events) {
      const next = event === events.at(-1) ? to : event.position;
      try {
        await this.enqueueBatch(position, [event], next);
        position = next;
      } catch (cause) {
        if (cause instanceof OvertakenError || isDatabaseUnavailable(cause)) throw cause;
        if (cause instanceof UnknownEventTypeError) throw cause;
        throw new Error(`event ${event.id} blocks all webhooks: ${getErrorMessage(cause)}`, {
          cause,
        });
      }
    }
  }

  private async enqueueBatch(from: Position, events: StoredEvent[], to: Position): Promise<void> {
    const work = async () => {
      const { claimingDispatcherId } = this.worker;
      this.worker.handOver(await this.enqueuer.enqueue(from, events, to, claimingDispatcherId));
    };
    // The position alone moves often, past events that are not published.
    if (events.length === 0) return work();
    const about = { 'inkpad.events': events.length };
    return runInSpan('webhook fan-out', about, work, { parent: ROOT_CONTEXT });
  }
}
