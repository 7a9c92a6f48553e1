// Lints openapi.json with the rules of Redocly, and insists on a sentence about every field: npm run rules
// Redocly's engine is here anyway, as a part of openapi-typescript; its command line would be fifty times as large.
import { createConfig, lint } from '@redocly/openapi-core';
import { readFileSync } from 'node:fs';

const DOCUMENT = 'openapi.json';

const config = await createConfig({
  extends: ['recommended-strict'],
  rules: {
    'operation-description': 'error',
    'parameter-description': 'error',
    'tag-description': 'error',
    'no-invalid-schema-examples': 'error',
    'no-invalid-parameter-examples': 'error',
  },
});
const problems = (await lint({ ref: DOCUMENT, config })).map(
  ({ message, location }) => `${location[0]?.pointer}: ${message}`,
);

const document = JSON.parse(readFileSync(DOCUMENT, 'utf8'));
problems.push(...findUndescribed(document, '#'));

for (const problem of problems) console.error(problem);
if (problems.length > 0) console.error(`${problems.length} errors in ${DOCUMENT}`);
else console.log(`${DOCUMENT} has no errors, and a sentence about every field`);
process.exitCode = problems.length === 0 ? 0 : 1;

/** Finds fields without a description, wherever a schema stands. */
function findUndescribed(value, pointer) {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, one]) => {
    if (key === 'example' || key === 'examples' || key === 'default') return [];
    const inside = findUndescribed(one, `${pointer}/${key}`);
    if (key !== 'properties') return inside;
    const silent = Object.entries(one)
      .filter(([, field]) => field.description === undefined)
      .map(([field]) => `${pointer}/${key}/${field}: has no description`);
    return [...silent, ...inside];
  });
}
