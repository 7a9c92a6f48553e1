import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'place-'));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

/** Starts a run whose tests leave a folder. @param then the script with which it ends */
function start(then: string): ChildProcess {
  const leave = `require('fs').mkdtempSync(require('os').tmpdir() + '/left-'); console.log('left');`;
  const importing = ['--import', resolve('test/support/jest/temporary-folder.mjs')];
  return spawn(process.execPath, [...importing, '--eval', leave + then], {
    env: { PATH: process.env['PATH'], TMPDIR: root },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
}

async function run(then: string): Promise<void> {
  await once(start(then), 'exit');
}

describe('the temporary folder', () => {
  it.each([
    ['ended', ''],
    ['failed', 'process.exitCode = 1'],
    ['called exit', 'process.exit(3)'],
    ['threw', 'throw new Error()'],
  ])('is empty after a run that %s', async (_how, then) => {
    await run(then);
    expect(readdirSync(root)).toEqual([]);
  });

  it('is cleared of a killed run once the next run has ended', async () => {
    await run(`process.kill(process.pid, 'SIGKILL')`);
    expect(readdirSync(root)).toHaveLength(1);
    await run('');
    expect(readdirSync(root)).toEqual([]);
  });

  it('keeps the folder of a run that is still running', async () => {
    const otherProcess = start('setInterval(() => {}, 1000)');
    await once(otherProcess.stdout ?? otherProcess, 'data');
    const [folder] = readdirSync(root);
    await run('');
    expect(readdirSync(root)).toEqual([folder]);
    expect(readdirSync(join(root, folder ?? ''))).toHaveLength(1);
    otherProcess.kill('SIGKILL');
    await once(otherProcess, 'exit');
  });
});
