import { Injectable, Logger } from '@nestjs/common';
import { Pool } from 'pg';
import { WakeSignal } from '#kernel/wake-signal.js';
import { LeaderLock } from '#database/leader-lock.js';
import { OvertakenError, readCheckpoint } from '#event-store/port/checkpoint.js';
import { EventStore, type Position, type StoredEvent } from '#event-store/port/event-store.js';
import { EventTypes } from '#event-store/port/event-types.js';
import { followLog, retryUntilAborted } from '#event-store/log/follow-log.js';
import { PASS_CHANGES, PassTable } from './pass-table.service.js';

const LEADERSHIP = { name: PASS_CHANGES, lock: 727_006 };
const BATCH_SIZE = 500;
const GATHER_MS = 500;
/** Every batch of the log wakes the refreshes. */
const IDLE_MS = 5_000;

/** Follows the log for changes of passes. One process does this at a time. */
@Injectable()
export class PassChanges {
  private readonly log = new Logger(LEADERSHIP.name);
  private readonly changes = new WakeSignal();

  constructor(
    private readonly pool: Pool,
    private readonly eventStore: EventStore,
    private readonly types: EventTypes,
    private readonly table: PassTable,
    private readonly lock: LeaderLock,
  ) {}

  /** Runs until the signal aborts, whatever happens to the database. */
  async run(signal: AbortSignal): Promise<void> {
    await this.lock.lead(LEADERSHIP, signal, async (leading) => {
      const steppedDown = new AbortController();
      const both = AbortSignal.any([leading, steppedDown.signal]);
      await Promise.all([this.follow(both).finally(() => steppedDown.abort()), this.refresh(both)]);
    });
  }

  private async follow(signal: AbortSignal): Promise<void> {
    const follower = {
      batch: BATCH_SIZE,
      gatherMs: GATHER_MS,
      readPosition: () => readCheckpoint(this.pool, PASS_CHANGES),
      advance: async (from: Position, events: StoredEvent[], to: Position) => {
        this.types.assertKnown(events, 'passes are not updated');
        await this.table.advance(from, to, events);
        this.changes.wake();
      },
    };
    await followLog(this.eventStore, follower, this.log, signal);
  }

  private async refresh(signal: AbortSignal): Promise<void> {
    await retryUntilAborted(this.log, signal, async (succeeded) => {
      try {
        const more = await this.table.refresh();
        succeeded();
        if (!more) await this.changes.wait(IDLE_MS, signal);
      } catch (error) {
        if (!(error instanceof OvertakenError)) throw error;
      }
    });
  }
}
