import fs from 'node:fs';

/**
 * Prints what CHANGELOG.md says about a version, for its release. Fails while a package has another version, or while the
 * changelog has no date for it.
 */
const version = process.argv[2];
if (!version) throw new Error('usage: node tools/generate/release-notes.mjs <version>');

const VERSIONS = {
  'package.json': /^ {2}"version": "(.*)",$/m,
  'clients/typescript/package.json': /^ {2}"version": "(.*)",$/m,
  'clients/python/pyproject.toml': /^version = "(.*)"$/m,
  'deploy/helm/inkpad/Chart.yaml': /^appVersion: (.*)$/m,
};

const errors = Object.entries(VERSIONS).flatMap(([file, pattern]) => {
  const actual = pattern.exec(fs.readFileSync(file, 'utf8'))?.[1];
  return actual === version ? [] : [`${file} has version ${actual}, not ${version}`];
});
const [heading = '', ...lines] = findSection(fs.readFileSync('CHANGELOG.md', 'utf8'));
if (!/, \d{4}-\d{2}-\d{2}$/.test(heading)) {
  errors.push(`CHANGELOG.md has no heading such as "## ${version}, 2026-01-31"`);
}

if (errors.length > 0) {
  for (const error of errors) console.error(error);
  process.exitCode = 1;
} else {
  console.log(lines.join('\n').trim());
}

/** Finds the lines from the heading of the version to the next one. */
function findSection(changelog) {
  const lines = changelog.split('\n');
  const start = lines.findIndex((line) => line.startsWith(`## ${version},`));
  if (start === -1) return [];
  const length = lines.slice(start + 1).findIndex((line) => line.startsWith('## '));
  return lines.slice(start, length === -1 ? undefined : start + 1 + length);
}
