import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { Program } from '../support/services/program.js';
import { startService, type Client, type Service } from '../support/services/service.js';
import { startDispatcher } from '../support/services/webhook-dispatcher.js';

/**
 * Tests a running service with Schemathesis, which knows only openapi.json. Each run begins with the same seed, so that
 * it repeats what the last one sent. A longer run with other requests:
 * `SCHEMATHESIS_SEED=7 SCHEMATHESIS_SECONDS=3600 npx jest --selectProjects=full test/api/schemathesis`.
 */

const VERSION = '4.32.5';
const SECONDS = process.env['SCHEMATHESIS_SECONDS'] ?? '60';
const SEED = process.env['SCHEMATHESIS_SEED'] ?? '1';
const INSTALL_MS = 300_000;

let folder: string;
let service: Service;
let store: Client;
let dispatcher: Program;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'inkpad-schemathesis-'));
  cpSync('test/api/schemathesis', folder, { recursive: true });
  await run('python3', ['-m', 'venv', 'python'], {});
  await run('python/bin/pip', ['install', '--quiet', `schemathesis==${VERSION}`], {});
  const noLimit = '1000000000';
  service = await startService({
    RATE_LIMIT_PER_MINUTE: noLimit,
    // A test webhook is sent at once, and must not wait for addresses that do not exist.
    WEBHOOK_ALLOW_INSECURE_TARGETS: 'true',
  });
  store = await service.newStore();
  // Fills the history, which proofs need.
  dispatcher = await startDispatcher(service);
}, INSTALL_MS);

afterAll(async () => {
  await dispatcher.kill('SIGTERM');
  await service.stop();
  rmSync(folder, { recursive: true });
});

/** Runs a program. @throws Error with its output unless it exits with 0 */
async function run(
  program: string,
  args: string[],
  environment: Record<string, string>,
): Promise<void> {
  const child = spawn(program.includes('/') ? join(folder, program) : program, args, {
    cwd: folder,
    env: { PATH: process.env['PATH'], TMPDIR: process.env['TMPDIR'], HOME: folder, ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => (output += text));
  }
  const [code] = (await Promise.race([
    once(child, 'close'),
    once(child, 'error').then(([error]: Error[]) => {
      throw new Error(`${program} is missing: apt-get install python3-venv`, { cause: error });
    }),
  ])) as [number | null];
  if (code !== 0) throw new Error(`${program} exited with ${code}:\n${output}`);
}

describe('the service', () => {
  it(
    'responds as openapi.json documents, and rejects what it forbids',
    async () => {
      const document = resolve('openapi.json');
      const args = ['run', document, '--url', service.baseUrl, '--max-time', SECONDS];
      // By default it takes a response after 10 seconds for none, also on a busy machine.
      args.push('--continue-on-failure', '--seed', SEED, '--request-timeout', '60');
      const environment = {
        OPENAPI: document,
        SCHEMA_CODES: resolve('test/support/fuzz/schema-codes.json'),
        SCHEMATHESIS_HOOKS: join(folder, 'hooks.py'),
        API_TOKEN: store.token ?? '',
        ACCOUNT_ID: String(store.accountId),
      };
      await expect(run('python/bin/schemathesis', args, environment)).resolves.toBeUndefined();
    },
    2 * Number(SECONDS) * 1000 + INSTALL_MS,
  );
});
