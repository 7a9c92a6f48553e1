import { Injectable, Logger } from '@nestjs/common';
import { drawPollMs } from '#platform/kernel/poll-interval.js';
import { WakeSignal } from '#platform/kernel/wake-signal.js';
import { LOCKS } from '#platform/database/locks.js';
import { OvertakenError } from '#platform/event-store/port/subscription-position.js';
import { retryUntilAborted } from '#platform/event-store/log/follow-log.js';
import { Followers } from '#platform/event-store/log/followers.service.js';
import { PASS_CHANGES, PassTable } from './pass-table.service.js';

/** Follows the log for changes of passes (ADR-0042). */
@Injectable()
export class PassChanges {
  private readonly log = new Logger(PASS_CHANGES);
  private readonly changes = new WakeSignal();

  constructor(
    private readonly followers: Followers,
    private readonly table: PassTable,
  ) {}

  /** Runs until the signal aborts, whatever happens to the database. */
  async run(signal: AbortSignal): Promise<void> {
    await this.followers.run(
      {
        name: PASS_CHANGES,
        lock: LOCKS.passes,
        subscription: PASS_CHANGES,
        batch: 500,
        gatherMs: 500,
        effect: 'passes are not updated',
        advance: async (step, events) => {
          await this.table.advance(step, events);
          this.changes.wake();
        },
        runBeside: (leading) => this.refresh(leading),
      },
      signal,
    );
  }

  private async refresh(signal: AbortSignal): Promise<void> {
    await retryUntilAborted(this.log, signal, async (succeeded) => {
      try {
        const more = await this.table.refresh();
        succeeded();
        // Every batch of the log wakes the refreshes.
        if (!more) await this.changes.wait(drawPollMs(), signal);
      } catch (error) {
        if (!(error instanceof OvertakenError)) throw error;
      }
    });
  }
}
