// First, so that its threads start before the rest is loaded.
import { describeUnrepaired, replayRecords } from './verification/replay.js';
import type pg from 'pg';
import type { EventStore } from '#platform/event-store/port/event-store.js';
import { readModels } from '../read-models.js';
import {
  HistoryVerification,
  type VerifiedHistory,
} from '#loyalty/history/history-verification.service.js';
import { StatisticsVerification } from '#loyalty/statistics/statistics-verification.service.js';
import type { VerificationResult } from '#platform/event-store/verification/verification.js';
import { retryLostConnections } from './lost-connections.js';
import { parseProgram } from './programs.js';
import { Progress } from './progress.js';
import { HistoryPass } from './verification/replay-history.js';
import { runProgram } from './run-program.js';
import {
  withVerification,
  type VerificationServices,
} from './verification/verification-services.js';
import { verifyCheckpoints } from './verification/verify-checkpoints.js';

const MAX_PRINTED = 50;

const NO_RECORDS = { streams: 0, events: 0, outdated: 0, repaired: 0, unrepaired: 0 };

type Sum = Omit<VerificationResult, 'differences'> & { differences: number };

const program = parseProgram('verify');
const {
  repair = false,
  checkpoints,
  key,
} = program.opts<{ repair?: true; checkpoints?: string; key?: string }>();
if (key !== undefined && checkpoints === undefined) {
  program.error('error: --key needs --checkpoints');
}

/**
 * Replays every event and checks every read model, hash, head and claim against the result, the history table against
 * the order of the log, and the statistics against the history table. The service keeps running. Prints differences and
 * exits 1 if there are any. `--repair` replaces what does not match the events; `--checkpoints DIR` also checks the
 * history against signed checkpoints.
 */
runProgram(async () => {
  let covered = '';
  let numbered = 0;
  let storeCount = 0;
  const sum: Sum = { ...NO_RECORDS, differences: 0 };
  const addDifferences = (differences: string[]) => {
    for (const difference of differences.slice(0, Math.max(0, MAX_PRINTED - sum.differences)))
      console.error(difference);
    sum.differences += differences.length;
  };
  const add = ({ differences = [], ...verified }: Partial<VerificationResult>) => {
    addDifferences(differences.map(({ stream, problem }) => `${stream}: ${problem}`));
    for (const name of ['streams', 'events', 'outdated', 'repaired', 'unrepaired'] as const)
      sum[name] += verified[name] ?? 0;
  };
  await withVerification(async (services) => {
    const { pool, store } = services;
    if (checkpoints !== undefined) {
      const { summary, differences } = await verifyCheckpoints(services, checkpoints, key);
      covered = summary;
      addDifferences(differences);
    }
    const progress = new Progress(
      'events compared',
      await retryLostConnections(() => countEvents(pool)),
    );
    const history = await retryLostConnections(() => HistoryVerification.begin(pool));
    const task = { tables: readModels, scope: { rows: true, claims: true, repair } };
    const [inPlace] = await Promise.all([
      store.isInDatabase ? verifyHistory(pool, progress) : null,
      replayRecords(
        services,
        task,
        (page) => history.add(page),
        (verified) => {
          add(verified);
          progress.add(verified.events ?? 0);
        },
      ),
    ]);
    const { events, errors } = inPlace ?? (await retryLostConnections(() => history.end()));
    progress.endIfShown();
    numbered = events;
    addDifferences(errors);
    if (repair && errors.length > 0) await repairHistory(services);
    // Afterwards, because they are counted from the history.
    const statistics = await retryLostConnections(() =>
      new StatisticsVerification(pool).verify(repair),
    );
    storeCount = statistics.stores;
    addDifferences(statistics.errors);
    addDifferences(await findDamage(store));
  });
  print(sum, { repair, covered, numbered, storeCount });
  if (sum.differences > 0 || sum.unrepaired > 0) process.exitCode = 1;
});

/** Finds what others have done to streams on a shared server. Prints what harms no record. */
async function findDamage(store: EventStore): Promise<string[]> {
  const { differences, notes } = await retryLostConnections(() => store.describeDamage());
  for (const note of notes.slice(0, MAX_PRINTED)) console.log(note);
  return differences;
}

function print(
  sum: Sum,
  {
    repair,
    covered,
    numbered,
    storeCount,
  }: { repair: boolean; covered: string; numbered: number; storeCount: number },
): void {
  if (sum.outdated > 0) {
    console.log(
      repair
        ? `${sum.outdated} read models were of an older projection version`
        : `${sum.outdated} read models are of an older projection version: each is projected again when it is next loaded`,
    );
  }
  if (sum.repaired > 0)
    console.log(`${sum.repaired} read models were repaired: they now match their events`);
  if (sum.unrepaired > 0) console.log(describeUnrepaired(sum.unrepaired));
  if (covered !== '') console.log(covered);
  console.log(`${numbered} events of the log were compared with the history table`);
  console.log(`the statistics of ${storeCount} stores were compared with the history table`);
  console.log(
    `${sum.streams} streams, ${sum.events} events: ${sum.differences === 0 ? 'every read model matches its events; every hash, head and claim is correct; the history is in order' : `${sum.differences} differences`}`,
  );
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

/** Prints whether it repaired the table, or the reason why the table is kept. */
async function repairHistory(services: VerificationServices): Promise<void> {
  const pass = await HistoryPass.begin(services);
  await pass.addAll(() => undefined);
  const { isRepaired, differences } = await pass.end(true);
  const [first] = differences;
  if (isRepaired) console.log('the history table was repaired: it now matches the log');
  else if (first) console.error(`history: ${first.entry}: ${first.problem}`);
}
