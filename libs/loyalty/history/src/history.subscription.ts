import { Injectable, Logger } from '@nestjs/common';
import { messageOf } from '#kernel/errors.js';
import { pause } from '#kernel/pause.js';
import { isDatabaseUnavailable } from '#database/connection.js';
import { LeaderLock } from '#database/leader-lock.js';
import { OvertakenError } from '#event-store/checkpoint.js';
import { EventStore } from '#event-store/event-store.js';
import { UnknownEventTypeError } from '#event-store/event-types.js';
import { HistoryTable } from './history-table.service.js';

const LEADERSHIP = { name: 'history', lock: 727_004 };
const BATCH = 1_000;
const BACK_OFF_MS = { first: 500, longest: 30_000 };

/**
 * Adds every event of the log to the history, in order and once: the entries and the checkpoint are written in one
 * statement that compares the checkpoint first. One process does this at a time. Its lock only saves the others the
 * work; the comparison is what makes it safe.
 */
@Injectable()
export class HistorySubscription {
  private readonly log = new Logger(LEADERSHIP.name);

  constructor(
    private readonly store: EventStore,
    private readonly table: HistoryTable,
    private readonly lock: LeaderLock,
  ) {}

  /** Runs until the signal aborts, whatever happens to the database. */
  async run(signal: AbortSignal): Promise<void> {
    await this.lock.lead(LEADERSHIP, signal, (leading) => this.follow(leading));
  }

  /** Runs until the signal aborts, or until another dispatcher should try instead. */
  private async follow(signal: AbortSignal): Promise<void> {
    for (let backOff = BACK_OFF_MS.first; !signal.aborted;) {
      try {
        let { position, end } = await this.table.reached();
        await this.store.subscribe({
          after: position,
          batch: BATCH,
          signal,
          onEvents: async (events, to) => {
            const entries = await this.table.next(events, end);
            await this.table.add(position, to, entries, end);
            position = to;
            end = entries.at(-1) ?? end;
            backOff = BACK_OFF_MS.first;
          },
        });
      } catch (error) {
        if (error instanceof OvertakenError) continue;
        const expected = isDatabaseUnavailable(error);
        const unknown = error instanceof UnknownEventTypeError;
        const message = `${messageOf(error)}; next try in ${backOff} ms`;
        if (expected) this.log.warn(message);
        else
          this.log.error(message, unknown || !(error instanceof Error) ? undefined : error.stack);
        await pause(backOff, signal);
        // A gap could never be filled. During an upgrade another dispatcher may know the event.
        if (unknown) return;
        backOff = Math.min(2 * backOff, BACK_OFF_MS.longest);
      }
    }
  }
}
