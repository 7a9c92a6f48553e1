import { expect, it } from '@jest/globals';
import { chmodSync, existsSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { eventually } from '../support/jest/eventually.js';
import { runNode, startProgram } from '../support/services/program.js';

it('the wallet demo shows stamps and a reward arriving on a phone', () => {
  // Settings of another service, which the demo must ignore.
  const env = { ...process.env, DATABASE_URL: 'postgres://other@127.0.0.1:1/other', PORT: 'none' };
  const { status, output } = runNode(['tools/start/demo-wallet.mjs'], env);
  expect({ status, output }).toEqual({
    status: 0,
    output: expect.stringMatching(
      /shows: {2}\d more stamps? to your reward: Free coffee[^]+shows: {2}Your reward is ready: Free coffee[^]+Everything works as expected/,
    ),
  });
});

it('the wallet demo removes its files and ends its service when it is stopped', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'inkpad-wallet-'));
  // Other users may pass through, because PostgreSQL runs as one of them when this one is root.
  chmodSync(folder, 0o711);
  const demo = startProgram('tools/start/demo-wallet.mjs', { ...process.env, TMPDIR: folder });
  const [runFile = ''] = await eventually(
    () => readdirSync(folder).map((name) => join(folder, name, 'run.json')),
    ([file]) => file !== undefined && existsSync(file),
  );
  const { starter } = JSON.parse(readFileSync(runFile, 'utf8')) as { starter: { pid: number } };
  await demo.kill('SIGTERM');
  expect(readdirSync(folder)).toEqual([]);
  expect(() => process.kill(starter.pid, 0)).toThrow('ESRCH');
  rmSync(folder, { recursive: true });
});
