// First, so that they start before the rest is loaded.
import { runInThread, threads } from './verify-threads.js';
import type pg from 'pg';
import type { StoredEvent } from '#platform/event-store/port/event-store.js';
import { readLog } from '#platform/event-store/log/read-log.js';
import type { AnyReadModel } from '#platform/event-store/read-models/read-models.js';
import {
  LogVerification,
  type VerifiedPage,
} from '#platform/event-store/verification/log-verification.js';
import type {
  Scope,
  Slice,
  Verification,
  VerificationResult,
} from '#platform/event-store/verification/verification.js';
import { readModels } from '../../read-models.js';
import { IdSet } from './id-set.js';
import { retryLostConnections } from '../lost-connections.js';
import type { VerificationServices } from './verification-services.js';

const PAGE = 5_000;
const BATCH_SIZE = 1_000;
/** Each thread reads one slice while it projects another. */
const SLICES_OF_THREAD = 2;

/** Gets each page of a log that is not in the database. @returns the number of events that the history must have */
type AddToHistory = (page: StoredEvent[]) => Promise<number>;

/** The records to replay, and what to do with them. */
export type ReplayTask = { tables: AnyReadModel[]; scope: Scope };

/** @property table undefined for events of the history */
type Report = (result: Partial<VerificationResult>, table?: string) => void;

type IsVerified = (table: string, id: number) => boolean;

/**
 * Replays the streams of records in all threads, and compares or repairs their read models and claims. A log that is not
 * in the database is read once, in its order, for all that can be verified so.
 */
export async function replayRecords(
  services: VerificationServices,
  task: ReplayTask,
  addToHistory: AddToHistory | null,
  report: Report,
): Promise<void> {
  const { pool, store, verification } = services;
  const isLogRead = !store.isInDatabase && (task.tables.length > 0 || addToHistory !== null);
  const isVerified = isLogRead
    ? await replayLog(services, task, addToHistory, report)
    : () => false;
  const slices = listSlices(services, task, { pool, isVerified, report });
  const verifyEach = async (verify: (slice: Slice) => Promise<VerificationResult>) => {
    for await (const slice of slices) report(await verify(slice), slice.table);
  };
  const verifySeveral = (verify: (slice: Slice) => Promise<VerificationResult>) =>
    Promise.all(Array.from({ length: SLICES_OF_THREAD }, () => verifyEach(verify)));
  await Promise.all([
    verifySeveral((slice) => verification.verifySlice(slice, task.scope, retryLostConnections)),
    ...threads.map(async (thread) => {
      try {
        await verifySeveral((slice) => runInThread(thread, { slice, scope: task.scope }));
      } finally {
        thread.worker.postMessage(null);
        await thread.ended;
      }
    }),
  ]);
}

/** Reading is most of the work, so another thread verifies the records. */
async function replayLog(
  services: VerificationServices,
  task: ReplayTask,
  addToHistory: AddToHistory | null,
  report: Report,
): Promise<IsVerified> {
  const { store, orphanedStreams } = services;
  const verifyRows = createLogVerification(services, task);
  const verifiedIds = new Map(readModels.map(({ table }) => [table, new IdSet()]));
  for await (const page of readLog(store, PAGE, retryLostConnections)) {
    const [rows, historyEvents] = await Promise.all([
      verifyRows(page),
      retryLostConnections(() => addToHistory?.(page) ?? Promise.resolve(0)),
      retryLostConnections(() => orphanedStreams.add(page)),
    ]);
    for (const { table, ids } of rows.slices) {
      for (const id of ids) verifiedIds.get(table)?.add(id);
      report({ streams: ids.length }, table);
    }
    report({ ...rows, streams: 0, events: rows.events + historyEvents });
  }
  return (table, id) => verifiedIds.get(table)?.has(id) ?? false;
}

/** Creates a function that verifies the next page of the log, in another thread if there is one. */
function createLogVerification(
  { verification, keys }: { verification: Verification } & Pick<VerificationServices, 'keys'>,
  { tables, scope }: ReplayTask,
): (page: StoredEvent[]) => Promise<VerifiedPage> {
  const [thread] = threads;
  const names = tables.map(({ table }) => table);
  if (thread) return (page) => runInThread(thread, { page, tables: names, scope });
  const log = new LogVerification(verification, keys, tables, scope);
  return (page) => retryLostConnections(() => log.add(page));
}

/** Says what to do about records that a repair left as they are. */
export const describeUnrepaired = (count: number): string =>
  `${count} records were not repaired: others kept changing or locking them, or other streams hold what they claim. Run this again.`;

/** Lists the records that have a read model, except those that were found right in the log, and then those without. */
async function* listSlices(
  { orphanedStreams }: VerificationServices,
  { tables }: ReplayTask,
  { pool, isVerified, report }: { pool: pg.Pool; isVerified: IsVerified; report: Report },
): AsyncGenerator<Slice> {
  for (const { table } of tables) {
    for (let after = -1; ;) {
      const { rows } = await retryLostConnections(() =>
        pool.query<{ id: number }>(
          `select id from ${table} where id > $1 order by id limit ${BATCH_SIZE}`,
          [after],
        ),
      );
      const last = rows.at(-1);
      if (!last) break;
      const ids = rows.flatMap(({ id }) => (isVerified(table, id) ? [] : [id]));
      if (ids.length > 0) yield { table, ids };
      after = last.id;
    }
  }
  if (tables.length === 0) return;
  for await (const { slices, unknown } of orphanedStreams.find()) {
    const problem = 'no aggregate with that name';
    report({ differences: unknown.map((stream) => ({ table: 'streams', stream, problem })) });
    for (const slice of slices) if (tables.some(({ table }) => table === slice.table)) yield slice;
  }
}
