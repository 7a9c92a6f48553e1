import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

let place: string;
beforeEach(() => {
  place = mkdtempSync(join(tmpdir(), 'place-'));
});
afterEach(() => rmSync(place, { recursive: true, force: true }));

/** A run whose tests leave a folder; `then` is how it ends. */
function begin(then: string): ChildProcess {
  const leave = `require('fs').mkdtempSync(require('os').tmpdir() + '/left-'); console.log('left');`;
  const importing = ['--import', resolve('test/support/jest/temporary-folder.mjs')];
  return spawn(process.execPath, [...importing, '--eval', leave + then], {
    env: { PATH: process.env['PATH'], TMPDIR: place },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
}

async function run(then: string): Promise<void> {
  await once(begin(then), 'exit');
}

describe('the temporary folder after a run', () => {
  it.each([
    ['ended', ''],
    ['failed', 'process.exitCode = 1'],
    ['called exit', 'process.exit(3)'],
    ['threw', 'throw new Error()'],
  ])('is as it was when it %s', async (_how, then) => {
    await run(then);
    expect(readdirSync(place)).toEqual([]);
  });

  it('is as it was before a run that was killed, once another has ended', async () => {
    await run(`process.kill(process.pid, 'SIGKILL')`);
    expect(readdirSync(place)).toHaveLength(1);
    await run('');
    expect(readdirSync(place)).toEqual([]);
  });

  it('still has the folder of a run beside it', async () => {
    const other = begin('setInterval(() => {}, 1000)');
    await once(other.stdout ?? other, 'data');
    const [folder] = readdirSync(place);
    await run('');
    expect(readdirSync(place)).toEqual([folder]);
    expect(readdirSync(join(place, folder ?? ''))).toHaveLength(1);
    other.kill('SIGKILL');
    await once(other, 'exit');
  });
});
