import '../../apps/cli/node-version.cjs';
import fs from 'node:fs';
import { endWithParent } from '../../apps/cli/npm-parent.mjs';
import { runJest } from './run-jest.mjs';
import { addImports, listSuites } from './test-imports.mjs';

/**
 * `npm run test:eventstoredb`: every suite that works on the event store of the tests, on KurrentDB. That is the server that
 * EVENT_STORE_URL names, or else the emulator. `-- core` runs those in which the engine matters most, as CI does, and
 * `-- stamping tokens` those with one of these in their path.
 */

const CORE = new Set([
  'api/idempotency-keys.full-spec.ts',
  'api/idempotency.e2e-spec.ts',
  'apple-wallet/pass-changes.full-spec.ts',
  'apple-wallet/passes.full-spec.ts',
  'customer-cards/rules.e2e-spec.ts',
  'customer-cards/wallet.e2e-spec.ts',
  'customers/filters.e2e-spec.ts',
  'customers/if-exists.e2e-spec.ts',
  'customers/rules.e2e-spec.ts',
  'customers/search-plans.e2e-spec.ts',
  'erasure/after-merge.long-spec.ts',
  'erasure/erasure.long-spec.ts',
  'erasure/repeated.long-spec.ts',
  'event-store/handle-command.e2e-spec.ts',
  'event-store/kills.full-spec.ts',
  'store-transfers/persons.long-spec.ts',
  'history/store.e2e-spec.ts',
  'locations/geocoding.full-spec.ts',
  'merging/merging.long-spec.ts',
  'messages/card-messages.full-spec.ts',
  'operations/log-verification.full-spec.ts',
  'redeeming/redemptions.e2e-spec.ts',
  'redeeming/rules.e2e-spec.ts',
  'stamping/budget.full-spec.ts',
  'stamping/by-code.e2e-spec.ts',
  'stamping/concurrency.e2e-spec.ts',
  'stamping/corrections.e2e-spec.ts',
  'stamping/receipts.full-spec.ts',
  'stamping/rules.e2e-spec.ts',
  'stamping/staff-reversals.e2e-spec.ts',
  'imports-and-exports/import-rules.full-spec.ts',
  'webhooks/kills.full-spec.ts',
]);

/** Suites about what only PostgreSQL has, by the reason. */
const LEFT_OUT = {
  'makes the tables fail that events have in PostgreSQL, or locks them': [
    'stamping/batches.full-spec.ts',
    'api/errors.e2e-spec.ts',
    'database/outages.full-spec.ts',
    'database/half-open-connections.long-spec.ts',
    'api/wire-settings.full-spec.ts',
  ],
  'uses cached cards, which only a commit to PostgreSQL can check': [
    'read-models/cache.full-spec.ts',
  ],
  'reads the metric of what holds back readers of the log, which only PostgreSQL has': [
    'monitoring/logs.full-spec.ts',
  ],
  'runs npm start, which gets no settings of the engine': ['deployment/start-kills.full-spec.ts'],
  'reads the tables that events have in PostgreSQL': [
    'webhooks/event-feed.e2e-spec.ts',
    'imports-and-exports/import-kills.long-spec.ts',
    'event-store/process-deaths.long-spec.ts',
    'operations/rebase-positions.long-spec.ts',
  ],
};

/** Opens the event store of the tests, whatever else a suite starts. */
const OPENS_ENGINE = /\b(?:useService|useSharedService)\(|TEST_ENGINE/;
/** What starts an emulator for one suite. */
const OWN_SERVER = /emulators[/]eventstoredb[/](?:as-process|cluster|server)[.]mjs$/;
/** Gives programs the settings of the engine that TEST_ENGINE names. */
const SETS_ENGINE = /\b(?:createTestEnvironment|testConfig)\(/;
const DEFINES_ENGINE = 'test/support/database/database.ts';

endWithParent();
const scopes = process.argv.slice(2);
const suites = listSuites();
const reasons = new Map(
  Object.entries(LEFT_OUT).flatMap(([reason, names]) =>
    names.map((name) => [`test/${name}`, reason]),
  ),
);
for (const file of [...reasons.keys(), ...Array.from(CORE, (name) => `test/${name}`)]) {
  if (!suites.includes(file)) throw new Error(`${file} does not exist: correct CORE or LEFT_OUT`);
}
const isInScope = (file) =>
  scopes.length === 0 ||
  scopes.some((scope) =>
    scope === 'core' ? CORE.has(file.slice('test/'.length)) : file.includes(scope),
  );
const chosen = suites.filter((file) => isInScope(file) && findReason(file) === undefined);
printLeftOut(suites.filter((file) => !chosen.includes(file)));
if (chosen.length === 0) {
  console.error(`No suite that can run on KurrentDB has "${scopes.join('" or "')}" in its path.`);
  process.exit(1);
}

const projects = ['e2e', 'long', 'full'];
process.exitCode = await runJest(
  ['--selectProjects', ...projects, '--maxWorkers=5', '--runTestsByPath', ...chosen],
  { env: { ...process.env, TEST_ENGINE: 'eventstoredb' } },
);

/** @returns {string | undefined} why a suite is left out */
function findReason(file) {
  if (reasons.has(file)) return reasons.get(file);
  const text = fs.readFileSync(file, 'utf8');
  if (OPENS_ENGINE.test(text)) return undefined;
  if (text.includes('PostgresEventStore')) return 'opens the engine of PostgreSQL itself';
  const files = [...addImports(file)];
  if (files.some((name) => OWN_SERVER.test(name))) {
    return 'starts an emulator of its own, on any engine';
  }
  const setsEngine = (name) =>
    name !== DEFINES_ENGINE && SETS_ENGINE.test(fs.readFileSync(name, 'utf8'));
  return files.some(setsEngine) ? undefined : 'opens no event store of the tests';
}

/** @param {string[]} files */
function printLeftOut(files) {
  const byReason = new Map();
  for (const file of files.filter(isInScope)) {
    const reason = findReason(file);
    byReason.set(reason, [
      ...(byReason.get(reason) ?? []),
      file.slice('test/'.length, -'-spec.ts'.length),
    ]);
  }
  for (const [reason, names] of byReason) {
    console.log(`Left out, ${names.length} suites: ${reason}: ${names.join(', ')}.`);
  }
  const others = files.filter((file) => !isInScope(file)).length;
  if (others > 0)
    console.log(`Left out, ${others} suites: without "${scopes.join('" or "')}" in their path.`);
}
