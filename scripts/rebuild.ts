import { once } from 'node:events';
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { setFlagsFromString } from 'node:v8';
import { Worker } from 'node:worker_threads';
import type { INestApplicationContext } from '@nestjs/common';
import { Pool } from 'pg';
import { Config } from '#configuration/config.js';
import { ConfigError } from '#kernel/config-error.js';
import { EventStore } from '#event-store/port/event-store.js';
import { EventTypes } from '#event-store/port/event-types.js';
import { PersonalKeys } from '#event-store/personal-keys/personal-keys.js';
import {
  Rebuild,
  type RebuildPlan,
  type RebuildResult,
} from '#event-store/verification/rebuild.js';
import { ReadModels } from '#event-store/read-models/read-models.js';
import type { Difference } from '#event-store/verification/staging-diff.js';
import { StagingBuilder } from '#event-store/verification/staging-builder.js';
import type { StreamRanges } from '#event-store/verification/stream-ranges.js';
import type { StreamRange } from '#event-store/verification/stream-replay.js';
import { CLAIMS, dropStagingTables } from '#event-store/verification/staging-tables.js';
import type { AnyReadModel } from '#event-store/read-models/read-models.js';
import { Verification } from '#event-store/verification/verification.js';
import { HistoryStagingBuilder } from '#history/history-staging.service.js';
import { StatisticsVerification } from '#statistics/statistics-verification.service.js';
import { readModels } from '../apps/read-models.js';
import { Progress } from './progress.js';
import { connectAsOwner } from './rebuild-client.js';
import type { Filling } from './rebuild-filling.js';
import type { LogFilled, LogFilling } from './rebuild-log-worker.js';
import { runScript } from './run-script.js';
import { withServices } from './script-services.js';

const STREAMS_PER_BATCH = 500;
const EXAMPLES = 10;
const MAX_THREADS = 8;
/** As in verify: nearly everything that is allocated is soon garbage. */
const YOUNG_MB = 64;

setFlagsFromString('--no-parallel-scavenge');

type RebuildTarget = {
  readModels: AnyReadModel[];
  claims: boolean;
  history: boolean;
  statistics: boolean;
};

const HISTORY = 'history';
const STATISTICS = 'statistics';
const ALL: RebuildTarget = { readModels, claims: true, history: true, statistics: true };
const USAGE = `Usage: npm run rebuild [-- --check] [--table NAME]
NAME is one of: ${[...readModels.map(({ table }) => table), CLAIMS.name, HISTORY, STATISTICS].join(', ')}`;

/**
 * Rebuilds the read models, the claims and the history table from the log in staging tables, while the service runs. Prints
 * differences, then swaps the tables in within one transaction; with `--check` it only prints. Exits 1 if anything differed.
 */
runScript(async () => {
  const { target, check } = parseTarget(process.argv.slice(2));
  const differences = await withServices(async (app) => {
    const count =
      target.statistics && isOnlyStatistics(target) ? 0 : await rebuild(app, target, check);
    return target.statistics ? count + (await rebuildStatistics(app, check)) : count;
  });
  if (differences > 0) process.exitCode = 1;
});

async function rebuild(
  app: INestApplicationContext,
  target: RebuildTarget,
  check: boolean,
): Promise<number> {
  const store = app.get(EventStore);
  const client = await connectAsOwner(app.get(Config));
  try {
    const keys = app.get(PersonalKeys);
    const rows = new Verification(app.get(Pool), store, app.get(ReadModels), keys, readModels);
    const history = target.history
      ? new HistoryStagingBuilder(client, store, app.get(EventTypes))
      : null;
    const plan: RebuildPlan = { readModels: target.readModels, claims: target.claims, history };
    const work = new Rebuild(client, store, rows, plan, readModels);
    await work.begin();
    const historyError = await fill(work, target, store);
    if (historyError !== undefined) work.keepHistory(historyError);
    const filler = new StagingBuilder(client, store, keys, work.stagedReadModels, plan.claims);
    console.error('building indexes and catching up with the log');
    await work.finish(filler);
    console.error('comparing the staging tables with the live ones');
    const rebuilt = await work.compare(filler);
    const confirmed = await work.confirm(rebuilt);
    if (check || !work.changesAnything) {
      report({ ...rebuilt, differences: confirmed }, 'nothing was changed');
      await dropStagingTables(client);
      return confirmed.length;
    }
    console.error('swapping the tables');
    const { differences, blockedMs } = await work.swap(filler, confirmed);
    report({ ...rebuilt, differences }, 'the rebuilt tables are in use');
    console.log(`writes waited ${Math.round(blockedMs)} ms for the swap`);
    return differences.length;
  } finally {
    await client.end();
  }
}

function isOnlyStatistics({ readModels: tables, claims, history }: RebuildTarget): boolean {
  return tables.length === 0 && !claims && !history;
}

/** Counts the statistics anew from the history table, one store after another, where they differ from it. */
async function rebuildStatistics(app: INestApplicationContext, check: boolean): Promise<number> {
  console.error('comparing the statistics with the history table');
  const { stores, errors } = await new StatisticsVerification(app.get(Pool)).verify(!check);
  for (const error of errors.slice(0, EXAMPLES)) console.log(error);
  const outcome = errors.length === 0 ? 'no difference' : `${errors.length} differences`;
  console.log(`statistics: ${stores} stores, ${outcome}`);
  return errors.length;
}

function parseTarget(args: string[]): { target: RebuildTarget; check: boolean } {
  const { check = false, table } = parseOptions(args);
  if (table === undefined) return { target: ALL, check };
  const tables = readModels.filter((rows) => rows.table === table);
  const target = {
    readModels: tables,
    claims: table === CLAIMS.name,
    history: table === HISTORY,
    statistics: table === STATISTICS,
  };
  if (tables.length === 0 && !target.claims && !target.history && !target.statistics)
    throw new ConfigError(USAGE);
  return { target, check };
}

function parseOptions(args: string[]): { check?: boolean; table?: string } {
  try {
    return parseArgs({ args, options: { check: { type: 'boolean' }, table: { type: 'string' } } })
      .values;
  } catch (cause) {
    throw new ConfigError(USAGE, { cause });
  }
}

/** @returns why the rebuilt history must not take the place of the live one, if so */
async function fill(
  work: Rebuild,
  { claims, history }: RebuildTarget,
  store: EventStore,
): Promise<string | undefined> {
  const progress = new Progress('events read', await work.countExpectedEvents());
  const filling: Filling = { tables: work.stagedReadModels.map(({ table }) => table), claims };
  const historyError = store.isInDatabase
    ? await fillFromDatabase(work, filling, history, progress)
    : // Reading each stream is a call to the server, so the log is read once for all tables.
      await fillFromLog({ ...filling, history }, progress);
  progress.end();
  return historyError;
}

async function fillFromDatabase(
  work: Rebuild,
  filling: Filling,
  history: boolean,
  progress: Progress,
): Promise<string | undefined> {
  const [historyError] = await Promise.all([
    history ? fillFromLog({ tables: [], claims: false, history }, progress) : undefined,
    fillFromStreams(work.streamRanges, filling, progress),
  ]);
  return historyError;
}

async function fillFromLog(filling: LogFilling, progress: Progress): Promise<string | undefined> {
  const worker = startThread('rebuild-log-worker.js', filling);
  const ended = once(worker, 'exit');
  let filled: LogFilled | undefined;
  worker.on('message', (message: LogFilled) => {
    filled = message;
    if ('events' in message) progress.add(message.events);
  });
  await ended;
  if (!filled || !('error' in filled))
    throw new ConfigError('The staging tables could not be filled.');
  return filled.error;
}

/** Fills the read models in several threads, because applying events is CPU-bound. */
async function fillFromStreams(
  ranges: StreamRanges,
  filling: Filling,
  progress: Progress,
): Promise<void> {
  if (filling.tables.length === 0) return;
  const parts = splitPages(ranges.read());
  const threads = Math.min(availableParallelism(), MAX_THREADS);
  await Promise.all(
    Array.from({ length: threads }, async () => {
      const worker = startThread('rebuild-worker.js', filling);
      const ended = once(worker, 'exit');
      try {
        for await (const part of parts) {
          worker.postMessage(part);
          const [events] = (await once(worker, 'message')) as [number];
          progress.add(events);
        }
      } finally {
        worker.postMessage(null);
        await ended;
      }
    }),
  );
}

function startThread(module: string, workerData: Filling): Worker {
  return new Worker(new URL(module, import.meta.url), {
    workerData,
    resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB },
  });
}

async function* splitPages(pages: AsyncIterable<StreamRange[]>): AsyncGenerator<StreamRange[]> {
  for await (const page of pages) {
    for (let i = 0; i < page.length; i += STREAMS_PER_BATCH) {
      yield page.slice(i, i + STREAMS_PER_BATCH);
    }
  }
}

function report({ differences, outdated, rowCounts }: RebuildResult, outcome: string): void {
  const byTable = new Map<string, Difference[]>();
  for (const one of differences) {
    const others = byTable.get(one.table);
    if (others) others.push(one);
    else byTable.set(one.table, [one]);
  }
  for (const [table, differencesOfTable] of byTable) {
    console.log(`${table}: ${differencesOfTable.length} differences`);
    for (const { stream, problem } of differencesOfTable.slice(0, EXAMPLES))
      console.log(`  ${stream}: ${problem}`);
    if (differencesOfTable.length > EXAMPLES)
      console.log(`  and ${differencesOfTable.length - EXAMPLES} more`);
  }
  for (const [table, count] of rowCounts) {
    if (!byTable.has(table)) console.log(`${table}: ${count} rows, no difference`);
  }
  if (outdated > 0) console.log(`${outdated} read models were of an older projection version`);
  const summary = differences.length === 0 ? 'no difference' : `${differences.length} differences`;
  console.log(`${summary}; ${outcome}`);
}
