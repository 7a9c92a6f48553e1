import { Injectable, Logger } from '@nestjs/common';
import { Pool } from 'pg';
import { messageOf } from '#kernel/errors.js';
import { pause } from '#kernel/pause.js';
import { isDatabaseUnavailable } from '#database/connection.js';
import { LeaderLock } from '#database/leader-lock.js';
import { checkpointOf, OvertakenError } from '#event-store/checkpoint.js';
import { EventStore } from '#event-store/event-store.js';
import { EventTypes, UnknownEventTypeError } from '#event-store/event-types.js';
import { PASS_CHANGES, PassTable } from './pass-table.service.js';

const LEADERSHIP = { name: PASS_CHANGES, lock: 727_006 };
const BATCH = 500;
const IDLE_MS = 1_000;
const BACK_OFF_MS = { first: 500, longest: 30_000 };

/** Follows the log for what changes passes. One process does this at a time. */
@Injectable()
export class PassChanges {
  private readonly log = new Logger(LEADERSHIP.name);

  constructor(
    private readonly pool: Pool,
    private readonly store: EventStore,
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

  /** Runs until the signal aborts, or until another dispatcher should try instead. */
  private async follow(signal: AbortSignal): Promise<void> {
    for (let backOff = BACK_OFF_MS.first; !signal.aborted;) {
      try {
        let position = await checkpointOf(this.pool, PASS_CHANGES);
        await this.store.subscribe({
          after: position,
          batch: BATCH,
          signal,
          onEvents: async (events, to) => {
            this.types.refuseUnknown(events, 'passes are not updated');
            await this.table.advance(position, to, events);
            position = to;
            backOff = BACK_OFF_MS.first;
          },
        });
      } catch (error) {
        if (error instanceof OvertakenError) continue;
        this.report(error, backOff);
        await pause(backOff, signal);
        // During an upgrade another dispatcher may know the event.
        if (error instanceof UnknownEventTypeError) return;
        backOff = Math.min(2 * backOff, BACK_OFF_MS.longest);
      }
    }
  }

  private async refresh(signal: AbortSignal): Promise<void> {
    for (let backOff = BACK_OFF_MS.first; !signal.aborted;) {
      try {
        if (!(await this.table.refresh())) await pause(IDLE_MS, signal);
        backOff = BACK_OFF_MS.first;
      } catch (error) {
        this.report(error, backOff);
        await pause(backOff, signal);
        backOff = Math.min(2 * backOff, BACK_OFF_MS.longest);
      }
    }
  }

  private report(error: unknown, backOff: number): void {
    const message = `${messageOf(error)}; next try in ${backOff} ms`;
    if (isDatabaseUnavailable(error)) this.log.warn(message);
    else {
      const unknown = error instanceof UnknownEventTypeError || !(error instanceof Error);
      this.log.error(message, unknown ? undefined : error.stack);
    }
  }
}
