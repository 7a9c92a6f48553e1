import { Pool } from 'pg';
import { LeaderLock } from '#database/leader-lock.js';
import { ProcessLink } from '#database/process-link.js';
import { Followers } from '#event-store/log/followers.service.js';
import { EventStore } from '#event-store/port/event-store.js';
import { EventTypes } from '#event-store/port/event-types.js';
import { HistoryTable } from '#history/history-table.service.js';
import { HistorySubscription } from '#history/history.subscription.js';
import { StatisticsTable } from '#statistics/statistics-table.service.js';
import { StatisticsSubscription } from '#statistics/statistics.subscription.js';
import type { LocalService } from './service.js';

/** Fills the history and counts it as a dispatcher does, until the signal aborts. */
export async function runStatistics({ app }: LocalService, signal: AbortSignal): Promise<void> {
  const [pool, lock] = [app.get(Pool), app.get(LeaderLock)];
  const history = new HistorySubscription(
    app.get(Followers),
    new HistoryTable(pool, app.get(EventTypes), app.get(EventStore)),
  );
  const statistics = new StatisticsSubscription(
    new StatisticsTable(pool),
    lock,
    app.get(ProcessLink),
  );
  await Promise.all([history.run(signal), statistics.run(signal)]);
}
