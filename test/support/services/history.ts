import { LeaderLock } from '#platform/database/leader-lock.js';
import { Followers } from '#platform/event-store/log/followers.service.js';
import { EventTypes } from '#platform/event-store/port/event-types.js';
import { HistoryTable } from '#loyalty/history/history-table.service.js';
import { HistorySubscription } from '#loyalty/history/history.subscription.js';
import type { Config } from '#configuration/config.js';
import { readModels } from '../../../apps/read-models.js';
import { openStore } from '../database/event-store.js';

/** Opens the subscription that fills the history, without the rest of a dispatcher. */
export async function openHistory(config: Config) {
  const opened = await openStore(config);
  const types = new EventTypes(readModels);
  const table = new HistoryTable(opened.pool, types, opened.store);
  const lock = new LeaderLock(opened.link);
  const followers = new Followers(opened.pool, opened.store, types, lock);
  const subscription = new HistorySubscription(followers, table);
  return { ...opened, table, subscription };
}
