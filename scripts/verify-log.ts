import { readLog } from '#event-store/log/read-log.js';
import type { PersonalKeys } from '#event-store/personal-keys/personal-keys.js';
import type { Verification } from '#event-store/verification/verification.js';
import type { StoredEvent } from '#event-store/port/event-store.js';
import { LogVerification, type VerifiedPage } from '#event-store/verification/log-verification.js';
import {
  HistoryVerification,
  type VerifiedHistory,
} from '#history/history-verification.service.js';
import { readModels } from '../apps/read-models.js';
import { IdSet } from './id-set.js';
import { retryLostConnections } from './lost-connections.js';
import type { VerificationServices } from './verification-services.js';
import { runInThread, threads } from './verify-threads.js';

const PAGE = 5_000;

/** @property isVerified tells whether a row was found right */
export type VerifiedLog = {
  history: VerifiedHistory;
  isVerified: (table: string, id: number) => boolean;
};

/** Creates a function that verifies the next page of the log, in another thread if there is one. */
function createRowVerification(
  verification: Verification,
  keys: PersonalKeys,
): (page: StoredEvent[]) => Promise<VerifiedPage> {
  const [thread] = threads;
  if (thread) return (page) => runInThread(thread, { page });
  const log = new LogVerification(verification, keys, readModels);
  return (page) => retryLostConnections(() => log.add(page));
}

/**
 * Reads a log that is not in the database once, for all that can be verified in its order: the table of the history,
 * streams without a read model, and most read models. Reading is most of the work, so another thread does the last.
 * @param onPage gets for each page the read models that were found right, and the number of events in `history`
 */
export async function verifyLog(
  { pool, store, strays, verification, keys }: VerificationServices,
  repair: boolean,
  onPage: (rows: VerifiedPage, historyEvents: number) => void,
): Promise<VerifiedLog> {
  const history = await retryLostConnections(() => HistoryVerification.begin(pool));
  const verifyRows = createRowVerification(verification, keys);
  const verifiedIds = new Map(readModels.map(({ table }) => [table, new IdSet()]));
  for await (const page of readLog(store, PAGE, retryLostConnections)) {
    const [rows, historyEvents] = await Promise.all([
      verifyRows(page),
      retryLostConnections(() => history.add(page)),
      retryLostConnections(() => strays.add(page, repair)),
    ]);
    for (const { table, ids } of rows.slices) for (const id of ids) verifiedIds.get(table)?.add(id);
    onPage(rows, historyEvents);
  }
  return {
    history: await retryLostConnections(() => history.end()),
    isVerified: (table, id) => verifiedIds.get(table)?.has(id) ?? false,
  };
}
