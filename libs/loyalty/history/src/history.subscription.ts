import { Injectable, Logger } from '@nestjs/common';
import { LeaderLock } from '#database/leader-lock.js';
import { EventStore, type Position, type StoredEvent } from '#event-store/port/event-store.js';
import { followLog } from '#event-store/log/follow-log.js';
import { HistoryTable } from './history-table.service.js';

const LEADERSHIP = { name: 'history', lock: 727_004 };
const BATCH = 1_000;
const GATHER_MS = 500;

/**
 * Adds every event of the log to the history, in order and once: the entries and the checkpoint are written in one
 * statement that compares the checkpoint first. One process does this at a time. Its lock only saves the others the
 * work; the comparison is what makes it safe.
 */
@Injectable()
export class HistorySubscription {
  private readonly log = new Logger(LEADERSHIP.name);

  constructor(
    private readonly eventStore: EventStore,
    private readonly table: HistoryTable,
    private readonly lock: LeaderLock,
  ) {}

  /** Runs until the signal aborts, whatever happens to the database. */
  async run(signal: AbortSignal): Promise<void> {
    await this.lock.lead(LEADERSHIP, signal, (leading) => this.follow(leading));
  }

  private async follow(signal: AbortSignal): Promise<void> {
    let end: Awaited<ReturnType<HistoryTable['getProgress']>>['end'];
    const follower = {
      batch: BATCH,
      gatherMs: GATHER_MS,
      readPosition: async () => {
        const reached = await this.table.getProgress();
        end = reached.end;
        return reached.position;
      },
      advance: async (from: Position, events: StoredEvent[], to: Position) => {
        const entries = await this.table.createNextEntries(events, end);
        await this.table.add(from, to, entries, end);
        end = entries.at(-1) ?? end;
      },
    };
    await followLog(this.eventStore, follower, this.log, signal);
  }
}
