import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

/**
 * Compares docs/api.md with test/contract: each rule has exactly one test whose title begins with its id,
 * each test has a rule, and none is skipped.
 */
const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const DOCUMENT = 'docs/api.md';
const TESTS = 'test/contract';
const JEST = /^(it|test|describe|[xf](it|test|describe))$/;

const faults = [];
const rules = readRules();
const tests = new Map();
for (const name of fs.readdirSync(path.join(root, TESTS), { recursive: true }).sort()) {
  // What jest runs; any other file would count here but never run.
  if (name.endsWith('.e2e-spec.ts')) readTests(`${TESTS}/${name}`);
  else if (name.endsWith('.ts')) faults.push(`${TESTS}/${name} is not run`);
}
for (const [rule, line] of rules) {
  if (!tests.has(rule)) faults.push(`${DOCUMENT}:${line} ${rule} has no test in ${TESTS}`);
}
for (const [rule, where] of tests) {
  if (!rules.has(rule)) faults.push(`${where} ${rule} is not a rule of ${DOCUMENT}`);
}
for (const fault of faults) console.error(fault);
if (faults.length > 0) {
  console.error(`${faults.length} errors in ${DOCUMENT} and ${TESTS}`);
  process.exitCode = 1;
} else {
  console.log(`${rules.size} rules, each with its test`);
}

function readRules() {
  const found = new Map();
  const lines = fs.readFileSync(path.join(root, DOCUMENT), 'utf8').split('\n');
  for (const [i, text] of lines.entries()) {
    const bold = /^\s*- \*\*(.*?)\*\*/.exec(text)?.[1];
    if (bold === undefined) continue;
    const where = `${DOCUMENT}:${i + 1}`;
    if (!/^[A-Z]+-\d{2,}$/.test(bold)) faults.push(`${where} ${bold} is not an id`);
    else if (found.has(bold)) faults.push(`${where} ${bold} appears twice`);
    else found.set(bold, i + 1);
  }
  if (found.size === 0) faults.push(`${DOCUMENT} has no rules`);
  return found;
}

function readTests(file) {
  const text = fs.readFileSync(path.join(root, file), 'utf8');
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.ES2022, true);
  const visit = (node) => {
    if (ts.isIdentifier(node) && JEST.test(node.text)) readUse(node, file, source);
    ts.forEachChild(node, visit);
  };
  visit(source);
}

/** `it` and `describe` may only be imported and called: no skip, only, each or alias. */
function readUse(node, file, source) {
  const { parent, text: name } = node;
  const { line } = source.getLineAndCharacterOfPosition(node.getStart(source));
  const where = `${file}:${line + 1}`;
  const isCalled = ts.isCallExpression(parent) && parent.expression === node;
  const isImported = ts.isImportSpecifier(parent);
  const isPlain = name === 'it' || name === 'describe';
  const isOther = !isPlain && !isCalled && !isImported;
  if (isOther || (isPlain && isImported && !parent.propertyName)) return;
  if (!isPlain || !isCalled) {
    faults.push(`${where} ${name}: use only plain it(…) and describe(…), so that every test runs`);
    return;
  }
  if (name === 'describe') return;
  const [title] = parent.arguments;
  const rule =
    title && ts.isStringLiteralLike(title) && /^([A-Z]+-\d{2,}) \S/.exec(title.text)?.[1];
  if (!rule) faults.push(`${where} a title must begin with the id of a rule`);
  else if (tests.has(rule))
    faults.push(`${where} ${rule} already has a test at ${tests.get(rule)}`);
  else tests.set(rule, where);
}
