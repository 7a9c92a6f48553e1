// Lints the OpenAPI documents with the rules of Redocly, and insists on a sentence about every field: npm run rules
// Redocly's engine is here anyway, as a part of openapi-typescript; its command line would be fifty times as large.
import { createConfig, lint } from '@redocly/openapi-core';
import { readFileSync } from 'node:fs';

const DOCUMENTS = ['openapi.json', 'openapi-admin.json'];

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
for (const name of DOCUMENTS) await check(name);

async function check(name) {
  const problems = (await lint({ ref: name, config })).map(
    ({ message, location }) => `${location[0]?.pointer}: ${message}`,
  );
  problems.push(...findUndescribed(JSON.parse(readFileSync(name, 'utf8')), '#'));
  for (const problem of problems) console.error(problem);
  if (problems.length === 0) {
    console.log(`${name} has no errors, and a sentence about every field`);
    return;
  }
  console.error(`${problems.length} errors in ${name}`);
  process.exitCode = 1;
}

/** Finds fields without a description, wherever a schema stands. */
function findUndescribed(value, pointer) {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, item]) => {
    if (key === 'example' || key === 'examples' || key === 'default') return [];
    const inside = findUndescribed(item, `${pointer}/${key}`);
    if (key !== 'properties') return inside;
    const silent = Object.entries(item)
      .filter(([, field]) => field.description === undefined)
      .map(([field]) => `${pointer}/${key}/${field}: has no description`);
    return [...silent, ...inside];
  });
}
