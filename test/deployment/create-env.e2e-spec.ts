import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';

const SCRIPT = resolve('deploy/create-env.sh');
const run = promisify(execFile);

let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'inkpad-env-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const create = (...names: string[]) => run(SCRIPT, names, { cwd: folder });
/** @returns what it says on its error output */
const findFailure = (...names: string[]) =>
  create(...names).then(
    () => undefined,
    ({ stderr }: { stderr: string }) => stderr,
  );
const read = () => readFile(join(folder, '.env'), 'utf8');

describe('deploy/create-env.sh', () => {
  it('writes settings with secrets of their own, which only their owner can read', async () => {
    await create('Cards.Example');
    const text = await read();
    expect(text).toContain('\nDOMAIN=cards.example\nPUBLIC_URL=https://cards.example\n');
    const secrets = [...text.matchAll(/^(?:\w+PASSWORD|MASTER_KEY)=(\S{44,48})$/gm)];
    expect(new Set(secrets.map(([, secret]) => secret)).size).toBe(4);
    expect((await stat(join(folder, '.env'))).mode & 0o777).toBe(0o600);
  });

  it.each([
    'https://cards.example',
    'http://cards.example',
    'cards.example/',
    'cards.example/app',
    'cards.example:443',
    'user@cards.example',
    'cards example',
    'cards',
    'cards..example',
    'cards.example.',
    '.cards.example',
    '-cards.example',
    'cards_1.example',
    '203.0.113.7',
    '[2001:db8::1]',
    'cards.example\nMASTER_KEY=x',
    '$(id).example',
    `${'a'.repeat(64)}.example`,
    '',
  ])('says that %j is not a domain, and writes nothing', async (name) => {
    expect(await findFailure(name)).toMatch(/is not a domain\. Leave out https:\/\//);
    expect(await readdir(folder)).toEqual([]);
  });

  it('asks for one domain', async () => {
    for (const names of [[], ['cards.example', 'other.example']]) {
      expect(await findFailure(...names)).toContain('name your domain');
    }
    expect(await readdir(folder)).toEqual([]);
  });

  it('leaves an .env as it is, and says what to do', async () => {
    await writeFile(join(folder, '.env'), 'MASTER_KEY=former\n');
    expect(await findFailure('cards.example')).toMatch(/edit DOMAIN and PUBLIC_URL in it/);
    expect(await read()).toBe('MASTER_KEY=former\n');
  });
});
