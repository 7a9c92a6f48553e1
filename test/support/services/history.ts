import { LeaderLock } from '#database/leader-lock.js';
import { EventTypes } from '#event-store/port/event-types.js';
import { HistoryTable } from '#history/history-table.service.js';
import { HistorySubscription } from '#history/history.subscription.js';
import type { Config } from '#configuration/config.js';
import { readModels } from '../../../apps/read-models.js';
import { openStore } from '../database/event-store.js';

/** Opens the subscription that fills the history, without the rest of a dispatcher. */
export async function openHistory(config: Config) {
  const opened = await openStore(config);
  const types = new EventTypes(readModels.map(({ aggregate }) => aggregate));
  const table = new HistoryTable(opened.pool, types);
  const lock = new LeaderLock(config);
  const subscription = new HistorySubscription(opened.store, table, lock);
  return { ...opened, table, subscription };
}
