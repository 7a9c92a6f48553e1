import { Injectable, Logger } from '@nestjs/common';
import { pause } from '#platform/kernel/pause.js';
import { drawPollMs } from '#platform/kernel/poll-interval.js';
import { WakeSignal } from '#platform/kernel/wake-signal.js';
import { LeaderLock } from '#platform/database/leader-lock.js';
import { LOCKS } from '#platform/database/locks.js';
import { ProcessLink } from '#platform/database/process-link.js';
import { OvertakenError } from '#platform/event-store/port/subscription-position.js';
import { retryUntilAborted } from '#platform/event-store/log/follow-log.js';
import { HISTORY_CHANNEL } from '#loyalty/history/history-table.service.js';
import { StatisticsTable } from './statistics-table.service.js';

const LEADERSHIP = { name: 'statistics', lock: LOCKS.statistics };
/** Minimum interval between batches while entries arrive. The first after a quiet time comes at once. */
const GATHER_MS = 1_000;

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
    private readonly link: ProcessLink,
  ) {}

  /** Runs until the signal aborts, whatever happens to the database. */
  async run(signal: AbortSignal): Promise<void> {
    await this.lock.lead(LEADERSHIP, signal, (leading) => this.lead(leading));
  }

  private async lead(signal: AbortSignal): Promise<void> {
    const news = new WakeSignal();
    const wake = () => news.wake();
    const endListening = this.link.listen(HISTORY_CHANNEL, wake, wake);
    try {
      await retryUntilAborted(this.log, signal, (onSuccess) =>
        this.follow(news, signal, onSuccess),
      );
    } finally {
      endListening();
    }
  }

  private async follow(
    news: WakeSignal,
    signal: AbortSignal,
    onSuccess: () => void,
  ): Promise<void> {
    while (!signal.aborted) {
      try {
        const isMore = await this.table.addNext();
        onSuccess();
        if (isMore) continue;
        await pause(GATHER_MS, signal);
        // What is due by the time, and announcements that got lost, are found by polling.
        await news.wait(drawPollMs() - GATHER_MS, signal);
      } catch (error) {
        if (!(error instanceof OvertakenError)) throw error;
      }
    }
  }
}
