import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { NameLookup } from '#outbound/sending/name-lookup.client.js';
import { useService } from '../support/http/contract.js';
import { createTestEnvironment } from '../support/database/database.js';
import { Shops } from '../support/fuzz/shops.js';
import { createStepArbitrary } from '../support/fuzz/steps.js';
import { NameServer } from '../support/emulators/name-server.js';
import { newImportDispatch } from '../support/services/import-dispatcher.js';
import { startProgram } from '../support/services/program.js';
import { Receiver } from '../support/emulators/webhook-receiver.js';

type Document = { paths: Record<string, Record<string, { operationId: string }>> };

const SEED = Number(process.env['FUZZ_SEED'] ?? 20_260_301);
const RUNS = Number(process.env['FUZZ_RUNS'] ?? 30);
const PATH = process.env['FUZZ_PATH'];
const STEPS = 80;
/** What thirty runs may lack: rows that update somebody, or that an undo leaves as they are. */
const RARE = new Set(['rows updated', 'rows refused']);
/** Keeps a run from hanging: no machine needs a minute for each. */
const WITHIN_MS = 600_000 + RUNS * 60_000;
/** Time after which the smallest failure so far is reported. */
const SHRINK_FOR_MS = 45_000;

const service = useService({ LOG_LEVEL: 'fatal', WEBHOOK_ALLOW_INSECURE_TARGETS: 'true' });
let receiver: Receiver;
let names: NameServer;
const stopping = new AbortController();

beforeAll(async () => {
  const imports = newImportDispatch(service.running).run(stopping.signal);
  service.running.onStop(() => {
    stopping.abort();
    return imports;
  });
  receiver = await Receiver.start();
  names = await NameServer.start(() => 'nxdomain');
  names.takeOver(service.running.app.get(NameLookup, { strict: false }));
});
afterAll(() => Promise.all([receiver.stop(), names.stop()]));

describe('every fuzzed request', () => {
  it(
    'gets a documented response, and leaves the stores consistent',
    async () => {
      const { baseUrl } = service.running;
      const document = (await (await fetch(`${baseUrl}/openapi.json`)).json()) as Document;
      // Without bias, since it would make the first runs short.
      const steps = fc.noBias(
        fc.array(createStepArbitrary(document), { minLength: 1, maxLength: STEPS, size: 'max' }),
      );
      const tried = new Set<string>();
      const imported = new Map<string, number>();
      let requests = 0;
      let failedAt = Infinity;
      const property = fc.asyncProperty(steps, async (run) => {
        if (Date.now() - failedAt > SHRINK_FOR_MS) return;
        const shops = await Shops.open(() => service.newStore(), receiver.url);
        try {
          await shops.play(run, () => service.running.history());
        } catch (error) {
          failedAt = Math.min(failedAt, Date.now());
          throw error;
        } finally {
          requests += shops.requests;
          for (const id of shops.tried) tried.add(id);
          for (const [what, count] of shops.imports.listCounts()) {
            imported.set(what, (imported.get(what) ?? 0) + count);
          }
        }
      });
      const outcome = await fc.check(property, {
        seed: SEED,
        numRuns: RUNS,
        ...(PATH !== undefined && { path: PATH }),
      });
      if (outcome.failed) {
        const { errorInstance, counterexamplePath, numShrinks } = outcome;
        throw new Error(
          `${errorInstance instanceof Error ? errorInstance.message : String(errorInstance)}

made smaller ${numShrinks} times; the same again:
FUZZ_SEED=${SEED} FUZZ_PATH=${counterexamplePath} npm run test:long -- test/api/fuzz`,
        );
      }
      const operations = Object.values(document.paths).flatMap((path) => Object.values(path));
      const untried = operations.filter(({ operationId }) => !tried.has(operationId));
      // A seed that leaves operations out is a poor one, unless there are only a few runs.
      const isLong = PATH === undefined && RUNS >= 30;
      expect(isLong ? untried : []).toEqual([]);
      // Imports that are all refused, or change nothing, test nothing.
      const missing = [...imported].filter(([what, count]) => count === 0 && !RARE.has(what));
      expect(isLong ? missing : []).toEqual([]);
      const { output, exitCode } = startProgram(
        'dist/apps/cli/verify.js',
        createTestEnvironment(service.running.database.url, service.running.environment),
      );
      expect([await exitCode, output()]).toEqual([
        0,
        expect.stringContaining('every read model matches'),
      ]);
      if (process.env['FUZZ_RUNS'] !== undefined) {
        const counts = [...imported].map(([what, count]) => `${count} ${what}`).join(', ');
        console.log(`${requests} requests, seed ${SEED}; imports: ${counts}`);
      }
    },
    WITHIN_MS,
  );
});
