import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { describeImagePackages, placeImagePackages } from './image-packages.mjs';
import { listLicences } from './licences.mjs';
import { pruneImage } from '../build/prune-image.mjs';

/**
 * Writes two lists of what the image has into a folder: sbom.cdx.json (CycloneDX) and licences.txt. Fails when a licence
 * is not allowed.
 */
const folder = process.argv[2];
if (!folder) throw new Error('usage: node tools/generate/sbom.mjs <folder>');
const VENDORED = [
  { group: '@scalar', name: 'api-reference', license: 'MIT', file: 'data/scalar.js.br' },
  { name: 'zxing-wasm', license: 'MIT', file: 'data/zxing-reader.wasm.br' },
];

const temporary = fs.mkdtempSync(path.join(os.tmpdir(), 'inkpad-sbom-'));
// npm calls the whole by the name of its folder.
const image = path.join(temporary, 'inkpad');
let document;
try {
  fs.mkdirSync(image);
  placeImagePackages(process.cwd(), image);
  pruneImage(image);
  const { components, ...rest } = describeImagePackages(image);
  document = { ...rest, components: [...components, ...VENDORED.map(describeVendored)] };
} finally {
  fs.rmSync(temporary, { recursive: true });
}
const licences = listLicences(document);
fs.mkdirSync(folder, { recursive: true });
fs.writeFileSync(path.join(folder, 'sbom.cdx.json'), `${JSON.stringify(document, null, 2)}\n`);
fs.writeFileSync(
  path.join(folder, 'licences.txt'),
  licences.map(({ line }) => `${line}\n`).join(''),
);

const refused = licences.filter(({ allowed }) => !allowed);
for (const { line } of refused)
  console.error(`${line}: see ALLOWED in tools/generate/licences.mjs`);
if (refused.length > 0) process.exitCode = 1;
else console.log(`${licences.length} packages, their licences in ${folder}`);

/** Describes a package whose files are in data, and which is no package here. NOTICE has its version. */
function describeVendored({ group, name, license, file }) {
  const full = group === undefined ? name : `${group}/${name}`;
  const pattern = new RegExp(`${full} (\\d+[.]\\d+[.]\\d+)`);
  const [, version] = pattern.exec(fs.readFileSync('NOTICE', 'utf8')) ?? [];
  if (!version) throw new Error(`NOTICE does not say which version of ${full} ${file} is`);
  const scope = group === undefined ? '' : `${encodeURIComponent(group)}/`;
  return {
    'bom-ref': `${full}@${version}`,
    type: 'library',
    name: full,
    version,
    purl: `pkg:npm/${scope}${name}@${version}`,
    licenses: [{ license: { id: license } }],
    properties: [{ name: 'inkpad:file', value: file }],
  };
}
