import { Injectable, Logger } from '@nestjs/common';
import { LOCKS } from '#platform/database/locks.js';
import { Followers } from '#platform/event-store/log/followers.service.js';
import { HistoryTable } from './history-table.service.js';

/**
 * Adds every event of the log to the history, in order and once: the entries and the position are written in one
 * statement that compares the position first.
 */
@Injectable()
export class HistorySubscription {
  private readonly log = new Logger('history');

  constructor(
    private readonly followers: Followers,
    private readonly table: HistoryTable,
  ) {}

  /** Runs until the signal aborts, whatever happens to the database. */
  async run(signal: AbortSignal): Promise<void> {
    let end: Awaited<ReturnType<HistoryTable['getProgress']>>['end'];
    await this.followers.run(
      {
        name: 'history',
        lock: LOCKS.history,
        batch: 1_000,
        gatherMs: 500,
        readPosition: async () => {
          const reached = await this.table.getProgress();
          end = reached.end;
          return reached.position;
        },
        advance: async (from, events, to) => {
          const { entries, gaps } = await this.table.createNextEntries(events, end);
          await this.table.add(from, to, entries, end);
          end = entries.at(-1) ?? end;
          for (const { stream, revision } of gaps) {
            this.log.warn(
              `${stream}: the event store has lost what was before event ${revision + 1}; the rest goes on`,
            );
          }
        },
      },
      signal,
    );
  }
}
