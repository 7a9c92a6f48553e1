// Compares two OpenAPI documents by meaning: node tools/checks/openapi-differences.mjs [git revision or file]
// Wording, examples, order and the location of a schema do not count; the exit code is 1 on any difference.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';

const WORDS = new Set([
  'summary',
  'description',
  'example',
  'examples',
  'title',
  'propertyNames',
  'x-codeSamples',
]);

const [against = 'HEAD'] = process.argv.slice(2);
const text = existsSync(against)
  ? readFileSync(against, 'utf8')
  : execFileSync('git', ['show', `${against}:openapi.json`], { maxBuffer: 64 * 1024 * 1024 });
const before = JSON.parse(text);
const after = JSON.parse(readFileSync('openapi.json', 'utf8'));

const lines = [
  'paths',
  'webhooks',
  'components/responses',
  'components/headers',
  'security',
].flatMap((part) => {
  const of = (document) =>
    normalizeNode(
      part.split('/').reduce((at, key) => at?.[key], document),
      document,
    );
  return findDifferences(of(before), of(after), part);
});
for (const difference of lines) console.log(difference);
console.log(lines.length === 0 ? 'no difference in meaning' : `${lines.length} differences`);
process.exitCode = lines.length === 0 ? 0 : 1;

/** Resolves references and normalizes equivalent spellings. */
function normalizeNode(value, document, isMap = false) {
  if (Array.isArray(value)) return value.map((one) => normalizeNode(one, document));
  if (typeof value !== 'object' || value === null) return value;
  if (value.$ref !== undefined && !isMap) {
    const { $ref, ...beside } = value;
    const target = $ref
      .split('/')
      .slice(1)
      .reduce((at, key) => at[key], document);
    return normalizeNode({ ...target, ...beside }, document);
  }
  const resolved = {};
  for (const [key, one] of Object.entries(value)) {
    if (!isMap && WORDS.has(key)) continue;
    resolved[key] = normalizeNode(
      one,
      document,
      !isMap && (key === 'properties' || key === 'headers'),
    );
  }
  return isMap ? resolved : normalizeSchema(resolved);
}

function normalizeSchema(schema) {
  const { const: only, oneOf, ...rest } = schema;
  if (only !== undefined) rest.enum = [only];
  if (oneOf?.every((one) => Object.keys(one).join() === 'type'))
    rest.type = oneOf.map(({ type }) => type);
  else if (oneOf !== undefined) rest.oneOf = oneOf;
  if (rest.type !== undefined && isOpen(rest.additionalProperties))
    delete rest.additionalProperties;
  if (Array.isArray(rest.required)) rest.required = rest.required.toSorted();
  if (Array.isArray(rest.type)) rest.type = rest.type.toSorted();
  return rest;
}

function isOpen(additional) {
  return (
    additional === true || (typeof additional === 'object' && Object.keys(additional).length === 0)
  );
}

function findDifferences(a, b, path) {
  if (isObject(a) && isObject(b)) {
    return [...new Set([...Object.keys(a), ...Object.keys(b)])].flatMap((key) => {
      if (!(key in a)) return [`${path}/${key}: new: ${shorten(b[key])}`];
      if (!(key in b)) return [`${path}/${key}: gone: ${shorten(a[key])}`];
      return findDifferences(a[key], b[key], `${path}/${key}`);
    });
  }
  if (Array.isArray(a) && Array.isArray(b) && a.length === b.length) {
    return a.flatMap((one, i) => findDifferences(one, b[i], `${path}/${i}`));
  }
  return Object.is(a, b) ? [] : [`${path}: ${shorten(a)} is now ${shorten(b)}`];
}

function isObject(value) {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function shorten(value) {
  const text = JSON.stringify(value) ?? 'nothing';
  return text.length > 120 ? `${text.slice(0, 120)}…` : text;
}
