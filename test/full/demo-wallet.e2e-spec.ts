import { expect, it } from '@jest/globals';
import { chmodSync, existsSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { eventually } from '../support/jest/eventually.js';
import { runNode, startProgram } from '../support/services/program.js';

it('the demonstration of wallets shows stamps arriving on a phone', () => {
  // Settings for another service, which it leaves alone.
  const env = { ...process.env, DATABASE_URL: 'postgres://other@127.0.0.1:1/other', PORT: 'none' };
  const { status, output } = runNode(['scripts/demo-wallet.mjs'], env);
  expect({ status, output }).toEqual({
    status: 0,
    output: expect.stringMatching(
      /shows: {2}You have 2 stamps[^]+shows: {2}Reward unlocked: Free coffee[^]+Everything works as expected/,
    ),
  });
});

it('leaves nothing behind when it is stopped', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'inkpad-wallet-'));
  // Passable, because PostgreSQL runs as another user when this one is root.
  chmodSync(folder, 0o711);
  const demo = startProgram('scripts/demo-wallet.mjs', { ...process.env, TMPDIR: folder });
  const [started = ''] = await eventually(
    () => readdirSync(folder).map((name) => join(folder, name, 'run.json')),
    ([file]) => file !== undefined && existsSync(file),
  );
  const { starter } = JSON.parse(readFileSync(started, 'utf8')) as { starter: { pid: number } };
  await demo.kill('SIGTERM');
  expect(readdirSync(folder)).toEqual([]);
  expect(() => process.kill(starter.pid, 0)).toThrow('ESRCH');
  rmSync(folder, { recursive: true });
});
