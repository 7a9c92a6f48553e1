import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, it } from '@jest/globals';

const BUILD = path.resolve('tools/build/build.mjs');

/** Runs an expression with the functions of the build. */
const withBuild = (expression: string) => `import('${BUILD}').then((build) => ${expression})`;

/** Installs the packages of a clone. @returns why it did not */
function installIn(root: string): string {
  const around = `{ root: '${root}', dataDir: '${root}', say() {}, onStep() {}, signal: AbortSignal.timeout(60_000) }`;
  const program = withBuild(`build.install(${around}, true)`);
  return spawnSync(process.execPath, ['-e', program], { encoding: 'utf8' }).stderr;
}

it('installs nothing while a service runs from the packages, however it ends', async () => {
  const root = mkdtempSync(path.join(tmpdir(), 'clone-'));
  writeFileSync(path.join(root, 'package.json'), '{}');
  const program = withBuild(
    `{ build.usePackages('${root}'); console.log('ready'); setInterval(() => {}, 1_000); }`,
  );
  const service = spawn(process.execPath, ['-e', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await new Promise((resolve) => service.stdout.once('data', resolve));
  expect(installIn(root)).toContain(
    `Packages have to be installed, and an Inkpad runs from those in ${root} (process ${service.pid}): stop that one first.`,
  );
  expect(existsSync(path.join(root, 'install.log'))).toBe(false);
  service.kill('SIGKILL');
  await new Promise((resolve) => service.once('exit', resolve));
  expect(installIn(root)).toBe('');
  expect(readFileSync(path.join(root, 'install.log'), 'utf8')).toContain('up to date');
});
