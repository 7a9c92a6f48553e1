import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { listLicences } from './licences.mjs';

/**
 * Writes two lists of what is shipped into a folder: sbom.cdx.json (CycloneDX) and licences.txt. Fails when a licence
 * is not allowed.
 */
const folder = process.argv[2];
if (!folder) throw new Error('usage: node scripts/sbom.mjs <folder>');

const { status, stdout, stderr, error } = spawnSync(
  'npm',
  ['sbom', '--omit=dev', '--sbom-format=cyclonedx'],
  { encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 },
);
if (status !== 0) throw new Error(`npm sbom failed:\n${stderr}`, { cause: error });

const licences = listLicences(JSON.parse(stdout));
fs.mkdirSync(folder, { recursive: true });
fs.writeFileSync(path.join(folder, 'sbom.cdx.json'), stdout);
fs.writeFileSync(
  path.join(folder, 'licences.txt'),
  licences.map(({ line }) => `${line}\n`).join(''),
);

const refused = licences.filter(({ allowed }) => !allowed);
for (const { line } of refused) console.error(`${line}: see ALLOWED in scripts/licences.mjs`);
if (refused.length > 0) process.exitCode = 1;
else console.log(`${licences.length} packages, their licences in ${folder}`);
