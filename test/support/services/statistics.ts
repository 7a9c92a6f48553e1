import { Pool } from 'pg';
import { LeaderLock } from '#platform/database/leader-lock.js';
import { ProcessLink } from '#platform/database/process-link.js';
import { Followers } from '#platform/event-store/log/followers.service.js';
import { EventStore } from '#platform/event-store/port/event-store.js';
import { EventTypes } from '#platform/event-store/port/event-types.js';
import { HistoryTable } from '#loyalty/history/history-table.service.js';
import { HistorySubscription } from '#loyalty/history/history.subscription.js';
import { StatisticsTable } from '#loyalty/statistics/statistics-table.service.js';
import { StatisticsSubscription } from '#loyalty/statistics/statistics.subscription.js';
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
