import { Injectable, Logger } from '@nestjs/common';
import { pause } from '#kernel/pause.js';
import { LeaderLock } from '#database/leader-lock.js';
import { OvertakenError } from '#event-store/port/checkpoint.js';
import { retryUntilAborted } from '#event-store/log/follow-log.js';
import { StatisticsTable } from './statistics-table.service.js';

const LEADERSHIP = { name: 'statistics', lock: 727_078 };
const POLL_MS = 1_000;

/**
 * Counts the entries of the history as they come. One process does this at a time; what makes it safe is that each
 * transaction compares the progress and its stores with what the step has read.
 */
@Injectable()
export class StatisticsSubscription {
  private readonly log = new Logger(LEADERSHIP.name);

  constructor(
    private readonly table: StatisticsTable,
    private readonly lock: LeaderLock,
  ) {}

  /** Runs until the signal aborts, whatever happens to the database. */
  async run(signal: AbortSignal): Promise<void> {
    await this.lock.lead(LEADERSHIP, signal, (leading) =>
      retryUntilAborted(this.log, leading, (onSuccess) => this.follow(leading, onSuccess)),
    );
  }

  private async follow(signal: AbortSignal, onSuccess: () => void): Promise<void> {
    while (!signal.aborted) {
      try {
        const isMore = await this.table.addNext();
        onSuccess();
        if (!isMore) await pause(POLL_MS, signal);
      } catch (error) {
        if (!(error instanceof OvertakenError)) throw error;
      }
    }
  }
}
