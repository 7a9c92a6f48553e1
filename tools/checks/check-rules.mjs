import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

/**
 * Compares docs/api.md and docs/admin-api.md with the tests: each rule has exactly one, whose title is the rule's id and first
 * sentence. A file with such a test has no other ones, and none of it is skipped. With --write, it corrects the titles.
 */
const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
const DOCUMENTS = ['docs/api.md', 'docs/admin-api.md'];
const TESTS = 'test';
/** Only files that jest runs; a rule in any other would have no test. */
const TEST_FILE = /[.](e2e|full|long)-spec[.]ts$/;
/** The title of a test. */
const HAS_RULE = /\b(it|test)\(\s*['"`][A-Z]+-\d{2,} /;
const JEST = /^(it|test|describe|[xf](it|test|describe))$/;

const errors = [];
const isWriting = process.argv.includes('--write');
const rules = new Map();
for (const name of DOCUMENTS) readRules(name);
const tests = new Map();
for (const name of fs.readdirSync(path.join(root, TESTS), { recursive: true }).sort()) {
  if (TEST_FILE.test(name)) readTests(`${TESTS}/${name}`);
}
for (const [rule, { place }] of rules) {
  if (!tests.has(rule)) errors.push(`${place} ${rule} has no test in ${TESTS}`);
}
for (const [rule, where] of tests) {
  if (!rules.has(rule)) errors.push(`${where} ${rule} is not a rule of ${DOCUMENTS.join(' or ')}`);
}
for (const error of errors) console.error(error);
if (errors.length > 0) {
  console.error(`${errors.length} errors in ${DOCUMENTS.join(', ')} and ${TESTS}`);
  process.exitCode = 1;
} else {
  console.log(`${rules.size} rules, each with its test`);
}

function readRules(document) {
  const countBefore = rules.size;
  const lines = fs.readFileSync(path.join(root, document), 'utf8').split('\n');
  for (const [i, text] of lines.entries()) {
    const bold = /^\s*- \*\*(.*?)\*\*/.exec(text)?.[1];
    if (bold === undefined) continue;
    const where = `${document}:${i + 1}`;
    if (!/^[A-Z]+-\d{2,}$/.test(bold)) errors.push(`${where} ${bold} is not an id`);
    else if (rules.has(bold)) errors.push(`${where} ${bold} appears twice`);
    else rules.set(bold, { place: where, title: `${bold} ${readFirstSentence(lines, i)}` });
  }
  if (rules.size === countBefore) errors.push(`${document} has no rules`);
}

/** Reads the first sentence of the list item that begins in line i, as plain text without its full stop. */
function readFirstSentence(lines, i) {
  const end = lines.findIndex((line, n) => n > i && !/^ +[^ -]/.test(line));
  const item = lines.slice(i, end).map((line) => line.trim());
  const text = item.join(' ').replace(/^- \*\*.*?\*\* /, '');
  const plain = text.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1').replaceAll('**', '');
  return plain.split(/(?<=[.])\s+(?=[A-Z`])/)[0].replace(/[.:]$/, '');
}

function readTests(file) {
  const text = fs.readFileSync(path.join(root, file), 'utf8');
  if (!HAS_RULE.test(text)) return;
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.ES2022, true);
  const titles = [];
  const visit = (node) => {
    if (ts.isIdentifier(node) && JEST.test(node.text)) readUse(node, file, source, titles);
    ts.forEachChild(node, visit);
  };
  visit(source);
  if (isWriting) writeTitles(file, text, titles);
}

function writeTitles(file, text, titles) {
  let written = text;
  for (const { title, wanted: expected } of titles.toReversed()) {
    const quoted = expected.includes("'") ? JSON.stringify(expected) : `'${expected}'`;
    written = written.slice(0, title.getStart()) + quoted + written.slice(title.end);
  }
  if (written !== text) fs.writeFileSync(path.join(root, file), written);
}

/** Reads a use of `it` or `describe`, which may only be imported and called: no skip, only, each or alias. */
function readUse(node, file, source, titles) {
  const { parent, text: name } = node;
  const { line } = source.getLineAndCharacterOfPosition(node.getStart(source));
  const where = `${file}:${line + 1}`;
  const isCalled = ts.isCallExpression(parent) && parent.expression === node;
  const isImported = ts.isImportSpecifier(parent);
  const isPlain = name === 'it' || name === 'describe';
  const isOther = !isPlain && !isCalled && !isImported;
  if (isOther || (isPlain && isImported && !parent.propertyName)) return;
  if (!isPlain || !isCalled) {
    errors.push(`${where} ${name}: use only plain it(…) and describe(…), so that every test runs`);
    return;
  }
  if (name === 'describe') return;
  const [title] = parent.arguments;
  const rule =
    title && ts.isStringLiteralLike(title) && /^([A-Z]+-\d{2,}) \S/.exec(title.text)?.[1];
  if (!rule) errors.push(`${where} a title must begin with the id of a rule`);
  else if (tests.has(rule))
    errors.push(`${where} ${rule} already has a test at ${tests.get(rule)}`);
  else {
    tests.set(rule, where);
    const expected = rules.get(rule)?.title;
    if (expected === undefined || title.text === expected) return;
    if (isWriting) titles.push({ title, wanted: expected });
    else errors.push(`${where} the title must be: ${expected} (npm run rules:write)`);
  }
}
