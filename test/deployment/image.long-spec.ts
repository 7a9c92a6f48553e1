import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join, relative } from 'node:path';
import { placeImagePackages } from '../../tools/generate/image-packages.mjs';
import { listPackages, measure, pruneImage } from '../../tools/build/prune-image.mjs';
import {
  createTestDatabase,
  createTestEnvironment,
  type TestDatabase,
} from '../support/database/database.js';
import { eventually } from '../support/jest/eventually.js';
import { readManual } from '../support/guides/manual.js';
import { findFreePort, startCommand } from '../support/services/program.js';

type Sbom = { components: { group?: string; name: string; version: string }[] };

const SLOW = 300_000;
const KEY = Buffer.alloc(32, 7).toString('base64');
const MISSING = /ERR_MODULE_NOT_FOUND|Cannot find|not installed|not been built|^ +at /m;

/** What the image links to as `inkpad`. */
const INKPAD = 'node apps/cli/inkpad.cjs';
const manual = readManual();
const commands = new Set(
  [...manual.matchAll(/(?:npx|dispatcher|migrate) inkpad ([a-z][a-z:-]*)/g)].map(
    ([, name = '']) => name,
  ),
);

let image: string;
/** What the Dockerfile removes. */
let superfluousBytes: number;
let database: TestDatabase;
let restored: TestDatabase;

/**
 * Copies what the last stage of the Dockerfile copies, as far as .dockerignore lets it, into an empty folder. Its packages
 * are those that the build stage leaves.
 */
function copyImage(folder: string): void {
  placeImagePackages(process.cwd(), folder);
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
      if (source === 'node_modules') continue;
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

function run(command: string, settings: NodeJS.ProcessEnv = createSettings(database), cwd = image) {
  const { status, stdout, stderr } = spawnSync('sh', ['-c', command], {
    cwd,
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
  superfluousBytes = pruneImage(image);
  [database, restored] = [await createTestDatabase(), await createTestDatabase()];
}, SLOW);

afterAll(async () => {
  rmSync(image, { recursive: true, force: true });
  await Promise.all([database.close(), restored.close()]);
});

describe('the files of the image', () => {
  it('have the command inkpad', () => {
    const dockerfile = readFileSync('Dockerfile', 'utf8');
    expect(dockerfile).toContain('RUN ln -s /app/apps/cli/inkpad.cjs /usr/local/bin/inkpad\n');
    expect(statSync(join(image, 'apps/cli/inkpad.cjs')).mode & 0o111).toBe(0o111);
  });

  it.each([...commands])('have what inkpad %s needs', (name) => {
    const { status, output } = run(`${INKPAD} ${name} --help`);
    expect(output).not.toMatch(MISSING);
    expect([status, output]).toEqual([0, expect.stringMatching(/^Usage: inkpad /)]);
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
      runEach([`${INKPAD} migrate`, `${INKPAD} audit:list`], database);
      runEach([`${INKPAD} backup ${join(image, 'backup')}`], database);
      runEach([`${INKPAD} restore ${join(image, 'backup')}`], restored);
      runEach([`${INKPAD} verify`, `${INKPAD} rebuild --check`], restored);
    },
    SLOW,
  );

  it('lack a PostgreSQL, and say so when a restore names no database', () => {
    const { status, output } = run(`${INKPAD} restore backup`, { DATA_DIR: image });
    expect([status, output]).toEqual([
      1,
      expect.stringMatching(/^DATABASE_URL is not set, and there is no PostgreSQL here/m),
    ]);
  });

  it('start the api, which serves the documentation and the status', async () => {
    const port = await findFreePort();
    const settings = { ...createSettings(database), PORT: String(port), MASTER_KEY: KEY };
    const api = startCommand([process.execPath, join(image, 'dist/apps/api/main.js')], settings, {
      cwd: image,
    });
    try {
      const read = (path: string) =>
        fetch(`http://127.0.0.1:${port}${path}`).then(
          ({ status }) => status,
          () => api.output(),
        );
      await eventually(
        () => read('/health/ready'),
        (status) => status === 200,
      );
      for (const path of ['/docs', '/openapi.json', '/api/v1/status']) {
        expect([path, await read(path)]).toEqual([path, 200]);
      }
    } finally {
      await api.kill('SIGTERM');
    }
  });

  it('are no source maps, no TypeScript and no tests, and half as large without them', () => {
    const names = readdirSync(image, { recursive: true, encoding: 'utf8' });
    expect(names.filter((name) => /[.](map|[cm]?ts)$/.test(name))).toEqual([]);
    const packages = measure(join(image, 'node_modules'));
    console.log(
      `the packages take ${(packages / 1e6).toFixed(1)} MB; ${(superfluousBytes / 1e6).toFixed(1)} MB were removed`,
    );
    expect(packages).toBeLessThan(100e6);
    expect(superfluousBytes).toBeGreaterThan(60e6);
  });

  it('keep the licence of every package', () => {
    const packages = listPackages(join(image, 'node_modules'));
    const lost = packages.filter(({ place }) => {
      const installed = join(process.cwd(), relative(image, place));
      return listLicences(installed).some((file) => !listLicences(place).includes(file));
    });
    expect(packages.length).toBeGreaterThan(200);
    expect(lost).toEqual([]);
  });

  it('are the packages of the SBOM, which has nothing else', () => {
    const folder = join(image, 'sbom');
    expect(
      run(`node ${join(process.cwd(), 'tools/generate/sbom.mjs')} ${folder}`, {}, process.cwd()),
    ).toEqual({
      status: 0,
      output: expect.stringMatching(/^\d+ packages, their licences in /),
    });
    const { components } = JSON.parse(readFileSync(join(folder, 'sbom.cdx.json'), 'utf8')) as Sbom;
    const listed = components.map(({ group, name, version }) =>
      [group === undefined ? name : `${group}/${name}`, version].join('@'),
    );
    const installed = listPackages(join(image, 'node_modules')).map(({ place }) => {
      const { name, version } = JSON.parse(readFileSync(join(place, 'package.json'), 'utf8')) as {
        name: string;
        version: string;
      };
      return `${name}@${version}`;
    });
    // Files in `data` hold them.
    const others = listed.filter((name) => !installed.includes(name));
    expect(others).toEqual([
      expect.stringMatching(/^@scalar\/api-reference@/),
      expect.stringMatching(/^zxing-wasm@/),
    ]);
    expect(installed.filter((name) => !listed.includes(name))).toEqual([]);
  });
});

function listLicences(place: string): string[] {
  return readdirSync(place).filter((name) => /licen[cs]e|copying|notice/i.test(name));
}
