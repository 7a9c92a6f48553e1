import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { isRemovedPackage } from '../build/prune-image.mjs';

/**
 * Puts the packages of the image into an empty folder, as the Dockerfile has them after `npm prune`: hard links where the
 * file system allows it, so nothing there may be written to.
 * @param {string} root of the project, with all its packages
 * @param {string} folder
 */
export function placeImagePackages(root, folder) {
  const packages = path.join(folder, 'node_modules');
  const source = path.join(root, 'node_modules');
  const isLinked = spawnSync('cp', ['-al', source, folder]).status === 0;
  if (!isLinked) {
    fs.rmSync(packages, { recursive: true, force: true });
    run('cp', ['-a', source, folder]);
  }
  // npm writes it, through the link into the project.
  fs.rmSync(path.join(packages, '.package-lock.json'), { force: true });
  fs.rmSync(path.join(packages, '.cache'), { recursive: true, force: true });
  for (const name of ['package.json', 'package-lock.json', '.npmrc']) {
    fs.copyFileSync(path.join(root, name), path.join(folder, name));
  }
  run('npm', ['prune', '--omit=dev', '--ignore-scripts', '--no-audit', '--no-fund'], folder);
}

/**
 * Describes the packages of the image (CycloneDX). `npm sbom --omit=dev` leaves out every package that one of the tools
 * uses as well, a third of them: so this asks for those of a folder in which no others are.
 */
export function describeImagePackages(folder) {
  const file = path.join(folder, 'package.json');
  const { devDependencies: _, ...shipped } = JSON.parse(fs.readFileSync(file, 'utf8'));
  const keep = (dependencies = {}) =>
    Object.fromEntries(Object.entries(dependencies).filter(([name]) => !isRemovedPackage(name)));
  const { dependencies, optionalDependencies } = shipped;
  fs.writeFileSync(
    file,
    JSON.stringify({
      ...shipped,
      dependencies: keep(dependencies),
      optionalDependencies: keep(optionalDependencies),
    }),
  );
  return JSON.parse(run('npm', ['sbom', '--sbom-format=cyclonedx'], folder));
}

function run(command, args, cwd) {
  const { status, stdout, stderr, error } = spawnSync(command, args, {
    cwd,
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
  });
  if (status !== 0) throw new Error(`${command} ${args[0]} failed:\n${stderr}`, { cause: error });
  return stdout;
}
