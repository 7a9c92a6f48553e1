// First, so that its threads start before the rest is loaded.
import { replayRecords, type ReplayTask } from './verification/replay.js';
import type { VerificationResult } from '#platform/event-store/verification/verification.js';
import { StatisticsVerification } from '#loyalty/statistics/statistics-verification.service.js';
import { readModels } from '../read-models.js';
import { retryLostConnections } from './lost-connections.js';
import { parseProgram } from './programs.js';
import { Progress } from './progress.js';
import { RebuildResults } from './verification/rebuild-results.js';
import { HistoryPass } from './verification/replay-history.js';
import { runProgram } from './run-program.js';
import {
  withVerification,
  type VerificationServices,
} from './verification/verification-services.js';

const CLAIMS = 'claims';
const HISTORY = 'history';
const STATISTICS = 'statistics';
const TABLES = [...readModels.map(({ table }) => table), CLAIMS, HISTORY, STATISTICS];

const program = parseProgram('rebuild');
const { check = false, table } = program.opts<{ check?: true; table?: string }>();
if (table !== undefined && !TABLES.includes(table)) {
  program.error(`error: --table must be one of: ${TABLES.join(', ')}`);
}

/**
 * Replays the log and repairs what differs from it in read models, claims and the table of the history, row by row,
 * while the service runs; then counts the statistics anew. Prints differences; with `--check` it only prints. Exits 1 if
 * anything differed or could not be repaired.
 */
runProgram(async () => {
  const results = new RebuildResults();
  await withVerification(async (services) => {
    const task = createTask(table, !check);
    await replay(services, task, isChosen(table, HISTORY), results);
    if (isChosen(table, STATISTICS)) {
      console.error('comparing the statistics with the history table');
      const { stores, errors } = await retryLostConnections(() =>
        new StatisticsVerification(services.pool).verify(!check),
      );
      results.add(STATISTICS, stores, errors);
      if (!check && errors.length > 0) results.isChanged = true;
    }
  });
  results.print();
  if (results.differenceCount > 0 || results.unrepaired > 0) process.exitCode = 1;
});

async function replay(
  services: VerificationServices,
  task: ReplayTask,
  hasHistory: boolean,
  results: RebuildResults,
): Promise<void> {
  const { store } = services;
  const total = await retryLostConnections(() => countEvents(services, task, hasHistory));
  const progress = new Progress('events replayed', total);
  const history = hasHistory ? await HistoryPass.begin(services) : null;
  const report = (result: Partial<VerificationResult>, table?: string) => {
    progress.add(result.events ?? 0);
    results.addRecords(result, table);
  };
  await Promise.all([
    replayRecords(services, task, history && ((page) => history.add(page)), report),
    store.isInDatabase ? history?.addAll((events) => progress.add(events)) : null,
  ]);
  progress.endIfShown();
  if (!history) return;
  const { count, differences, isRepaired } = await history.end(task.scope.repair);
  results.add(
    HISTORY,
    count,
    differences.map(({ entry, problem }) => `${entry}: ${problem}`),
  );
  if (isRepaired) results.isChanged = true;
}

/** Estimates how many events there are to replay, from the positions of the tables. */
async function countEvents(
  { pool }: VerificationServices,
  { tables }: ReplayTask,
  hasHistory: boolean,
): Promise<number> {
  const counts = tables.map(({ table }) => `(select coalesce(sum(revision + 1), 0) from ${table})`);
  counts.push(hasHistory ? '(select coalesce(max(seq) + 1, 0) from history)' : '0');
  const { rows } = await pool.query<{ n: number }>(`select (${counts.join(' + ')})::bigint as n`);
  return rows[0]?.n ?? 0;
}

const isChosen = (table: string | undefined, name: string) => table === undefined || table === name;

function createTask(table: string | undefined, repair: boolean): ReplayTask {
  const rows = readModels.filter((readModel) => isChosen(table, readModel.table));
  const claims = isChosen(table, CLAIMS);
  const tables =
    rows.length === 0 && claims
      ? readModels.filter(({ getClaimChanges }) => getClaimChanges)
      : rows;
  return { tables, scope: { rows: rows.length > 0, claims, repair } };
}
