import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { createTestEnvironment } from '../support/database/database.js';
import { DatabaseProxy } from '../support/database/database-proxy.js';
import { eventually } from '../support/jest/eventually.js';
import { findFreePort, startProgram } from '../support/services/program.js';
import { startService, type LocalService } from '../support/services/service.js';

const ADVICE = 'Once it is back, run this again.';

let service: LocalService;
let folder: string;

beforeAll(async () => {
  service = await startService();
  folder = mkdtempSync(join(tmpdir(), 'inkpad-lost-'));
});
afterAll(async () => {
  rmSync(folder, { recursive: true });
  await service.stop();
});

const createEnvironment = (url: string) => createTestEnvironment(url, service.environment);

/** Runs a command until it waits for a locked table, and ends its connections, as a failover does. */
async function runUntilCut(table: string, command: string, ...parameters: string[]) {
  const proxy = await DatabaseProxy.to(service.database.url);
  const owner = new pg.Client({ connectionString: service.database.ownerUrl });
  await owner.connect();
  await owner.query('begin');
  await owner.query(`lock table ${table} in access exclusive mode`);
  const program = startProgram(
    `dist/apps/cli/${command}.js`,
    createEnvironment(proxy.url),
    parameters,
  );
  try {
    await eventually(
      async () =>
        (
          await service.database.query<{ count: number }>(
            `select count(*)::int as count from pg_locks
             where relation = $1::regclass and not granted`,
            [table],
          )
        ).rows[0]?.count,
      (count = 0) => count > 0,
    );
    await proxy.cut();
  } finally {
    await owner.end();
  }
  return { exitCode: await program.exitCode, output: program.output() };
}

it('backup says in one sentence that its connection was lost, and what to do, and leaves no half of a backup', async () => {
  const { exitCode, output } = await runUntilCut('imports', 'backup', join(folder, 'cut'));
  expect(output).toMatch(
    new RegExp(
      String.raw`^backing up into .*\n(.*\n)?The connection to the database was lost: .*\. ${ADVICE}\n$`,
    ),
  );
  expect(output).toContain('was deleted.\n');
  expect(exitCode).toBe(1);
  expect(readdirSync(folder)).toEqual([]);
});

it('verify tries again for a minute, and says what to do after that', async () => {
  const { exitCode, output } = await runUntilCut('customers', 'verify');
  expect(output).toMatch(
    new RegExp(
      String.raw`^(.*; trying again for up to a minute\n)+The connection to the database was lost: .*\. ${ADVICE}\n$`,
    ),
  );
  expect(exitCode).toBe(1);
}, 180_000);

it.each(['backup', 'verify'])(
  '%s says what to do when it starts during a failover, whose proxy closes each connection',
  async (command) => {
    const proxy = await DatabaseProxy.to(`postgres://u:p@127.0.0.1:${await findFreePort()}/inkpad`);
    const parameters = command === 'backup' ? [join(folder, 'none')] : [];
    const program = startProgram(
      `dist/apps/cli/${command}.js`,
      createEnvironment(proxy.url),
      parameters,
    );
    expect(await program.exitCode).toBe(1);
    expect(program.output()).toMatch(
      new RegExp(
        String.raw`^The database inkpad at .* cannot be used: Connection terminated unexpectedly\. ${ADVICE}\n$`,
      ),
    );
    await proxy.close();
  },
);
