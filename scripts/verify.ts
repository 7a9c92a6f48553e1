// First, so that they start before the rest is loaded.
import { runInThread, threads } from './verify-threads.js';
import { parseArgs } from 'node:util';
import type pg from 'pg';
import { ConfigError } from '#kernel/config-error.js';
import type { EventStore } from '#event-store/port/event-store.js';
import { readModels } from '../apps/read-models.js';
import {
  HistoryVerification,
  type VerifiedHistory,
} from '#history/history-verification.service.js';
import { StatisticsVerification } from '#statistics/statistics-verification.service.js';
import type {
  Slice,
  Verification,
  VerificationResult,
} from '#event-store/verification/verification.js';
import { retryLostConnections } from './lost-connections.js';
import { Progress } from './progress.js';
import { runScript } from './run-script.js';
import { withVerification } from './verification-services.js';
import { verifyCheckpoints } from './verify-checkpoints.js';
import { verifyLog, type VerifiedLog } from './verify-log.js';

const USAGE = 'Usage: npm run verify [-- --repair] [--checkpoints DIR [--key KEY]]';
/** Limits the memory of differences already printed: one that is found in two ways is printed once. */
const MAX_REMEMBERED = 10_000;
const BATCH_SIZE = 1_000;
/** Each thread reads one slice while it projects another. */
const SLICES_OF_THREAD = 2;
const MAX_PRINTED = 50;

type Sum = Omit<VerificationResult, 'differences'> & { differences: number };

/**
 * Replays every event and checks every read model, hash, head and claim against the result, the history table against
 * the order of the log, and the statistics against the history table. The service keeps running. Prints differences and exits 1 if there are any. `--repair` replaces
 * read models that do not match their events; `--checkpoints DIR` also checks the history against signed checkpoints.
 */
runScript(async () => {
  const { repair = false, checkpoints, key } = parseOptions(process.argv.slice(2));
  const reported = new Set<string>();
  let covered = '';
  let numbered = 0;
  let storeCount = 0;
  const sum: Sum = { streams: 0, events: 0, differences: 0, outdated: 0, repaired: 0 };
  const add = (verified: Partial<VerificationResult>) => {
    const differences = (verified.differences ?? []).filter(
      (difference) => !reported.has(difference),
    );
    for (const difference of differences)
      if (reported.size < MAX_REMEMBERED) reported.add(difference);
    for (const difference of differences.slice(0, Math.max(0, MAX_PRINTED - sum.differences)))
      console.error(difference);
    sum.differences += differences.length;
    for (const name of ['streams', 'events', 'outdated', 'repaired'] as const) {
      sum[name] += verified[name] ?? 0;
    }
  };
  await withVerification(async (services) => {
    const { pool, store, verification } = services;
    if (checkpoints !== undefined) {
      const { summary, differences } = await verifyCheckpoints(services, checkpoints, key);
      covered = summary;
      add({ differences });
    }
    const progress = new Progress(
      'events compared',
      await retryLostConnections(() => countEvents(pool)),
    );
    const log = store.isInDatabase
      ? null
      : await verifyLog(services, repair, (rows, historyEvents) => {
          add(rows);
          progress.add(rows.events + historyEvents);
        });
    const [{ events, errors }, strays] = await Promise.all([
      log?.history ?? verifyHistory(pool, progress),
      retryLostConnections(() => services.strays.find(repair)),
      verifySlices({ verification, slices: listSlices(pool, log), repair }, (verified) => {
        add(verified);
        progress.add(verified.events);
      }),
    ]);
    progress.endIfShown();
    numbered = events;
    add({ differences: errors });
    // Afterwards, because they are counted from the history.
    const statistics = await retryLostConnections(() =>
      new StatisticsVerification(pool).verify(repair),
    );
    storeCount = statistics.stores;
    add({ differences: statistics.errors });
    add(strays);
    add(await findDamage(store));
  });
  print(sum, { covered, numbered, storeCount });
  if (sum.differences > 0) process.exitCode = 1;
});

/** Finds what others have done to streams on a shared server. Prints what harms no record. */
async function findDamage(store: EventStore): Promise<Pick<VerificationResult, 'differences'>> {
  const { differences, notes } = await retryLostConnections(() => store.describeDamage());
  for (const note of notes.slice(0, MAX_PRINTED)) console.log(note);
  return { differences };
}

function print(
  sum: Sum,
  { covered, numbered, storeCount }: { covered: string; numbered: number; storeCount: number },
): void {
  if (sum.outdated > 0) {
    console.log(
      `${sum.outdated} read models are of an older projection version: each is projected again when it is next loaded`,
    );
  }
  if (sum.repaired > 0)
    console.log(`${sum.repaired} read models were repaired: they now match their events`);
  if (covered !== '') console.log(covered);
  console.log(`${numbered} events of the log were compared with the history table`);
  console.log(`the statistics of ${storeCount} stores were compared with the history table`);
  console.log(
    `${sum.streams} streams, ${sum.events} events: ${sum.differences === 0 ? 'every read model matches its events; every hash, head and claim is correct; the history is in order' : `${sum.differences} differences`}`,
  );
}

function parseOptions(args: string[]) {
  const options = {
    repair: { type: 'boolean' },
    checkpoints: { type: 'string' },
    key: { type: 'string' },
  } as const;
  try {
    const { values } = parseArgs({ args, options });
    if (values.key === undefined || values.checkpoints !== undefined) return values;
  } catch (cause) {
    throw new ConfigError(USAGE, { cause });
  }
  throw new ConfigError(USAGE);
}

/** Counts the events to compare: those that the read models are made from, and those of the history table. */
async function countEvents(pool: pg.Pool): Promise<number> {
  const counts = readModels.map(
    ({ table }) => `(select coalesce(sum(revision + 1), 0) from ${table})`,
  );
  counts.push('(select coalesce(max(seq) + 1, 0) from history)');
  const { rows } = await pool.query<{ n: number }>(`select (${counts.join(' + ')})::bigint as n`);
  return rows[0]?.n ?? 0;
}

/** Compares the table of the history with a log in the same database. */
function verifyHistory(pool: pg.Pool, progress: Progress): Promise<VerifiedHistory> {
  return retryLostConnections(async () => {
    const verification = await HistoryVerification.begin(pool);
    return verification.verifyInPlace((count) => progress.add(count));
  });
}

/** Lists the rows of all read models, except those that were found right in the log. */
async function* listSlices(pool: pg.Pool, log: VerifiedLog | null): AsyncGenerator<Slice> {
  for (const { table } of readModels) {
    for (let after = -1; ;) {
      const { rows } = await retryLostConnections(() =>
        pool.query<{ id: number }>(
          `select id from ${table} where id > $1 order by id limit ${BATCH_SIZE}`,
          [after],
        ),
      );
      const last = rows.at(-1);
      if (!last) break;
      const ids = rows.flatMap(({ id }) => (log?.isVerified(table, id) ? [] : [id]));
      if (ids.length > 0) yield { table, ids };
      after = last.id;
    }
  }
}

type Work = {
  verification: Verification;
  slices: AsyncGenerator<Slice>;
  repair: boolean;
};

async function verifySlices(
  { verification, slices, repair }: Work,
  add: (verified: VerificationResult) => void,
): Promise<void> {
  const oneByOne = async (verify: (slice: Slice) => Promise<VerificationResult>) => {
    for await (const slice of slices) add(await verify(slice));
  };
  const several = (verify: (slice: Slice) => Promise<VerificationResult>) =>
    Promise.all(Array.from({ length: SLICES_OF_THREAD }, () => oneByOne(verify)));
  await Promise.all([
    several((slice) => retryLostConnections(() => verification.verifySlice(slice, repair))),
    ...threads.map(async (thread) => {
      try {
        await several((slice) => runInThread(thread, { slice, repair }));
      } finally {
        thread.worker.postMessage(null);
        await thread.ended;
      }
    }),
  ]);
}
