import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

/**
 * Checks that every rule and decision that code and documents cite exists, that doc comments name errors and properties
 * that exist, and that no name is a participle, which says nothing about what it holds (CONTRIBUTING.md#words).
 */
const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
const FOLDERS = ['.github', 'apps', 'bench', 'clients', 'deploy', 'docs', 'libs', 'tools', 'test'];
const SKIPPED = /(^|\/)(node_modules|dist|stored-events)\//;
/** Participles and bare verbs name a state or an action, never the thing itself. An answer is a response or a result. */
const VAGUE_NAME =
  /^(given|found|told|asked|known|wanted|taken|counted|kept|held|made|begun|said|shown|bound)$|answer/i;

const rules = new Set(
  ['docs/api.md', 'docs/admin-api.md'].flatMap(
    (file) => read(file).match(/(?<=^- \*\*)[A-Z]+-\d{2,}(?=\*\*)/gm) ?? [],
  ),
);
const prefixes = [...new Set([...rules].map((rule) => rule.split('-')[0]))].join('|');
const decisions = new Set(
  fs.readdirSync(path.join(root, 'docs/adr')).map((name) => `ADR-${name.slice(0, 4)}`),
);
const RULE = new RegExp(`\\b(?:${prefixes})-\\d{2,}\\b`, 'g');
const errors = [];
const texts = new Map(listFiles(root).map((file) => [file, read(file)]));
const classes = new Set(
  [...texts].flatMap(([file, text]) =>
    /[.](ts|mjs)$/.test(file) ? (text.match(/(?<=^[^*/'`\n]*\bclass )\w+/gm) ?? []) : [],
  ),
);

for (const [file, text] of texts) {
  for (const [i, line] of text.split('\n').entries()) checkLine(line, `${file}:${i + 1}`);
  if (/[.](ts|mjs)$/.test(file)) checkNames(file, text);
}
for (const error of errors) console.error(error);
if (errors.length > 0) process.exitCode = 1;

function checkLine(line, where) {
  for (const [rule] of line.matchAll(RULE)) {
    if (!rules.has(rule))
      errors.push(`${where} ${rule} is not a rule of docs/api.md or docs/admin-api.md`);
  }
  for (const [decision] of line.matchAll(/\bADR-\d+/g)) {
    if (!decisions.has(decision)) errors.push(`${where} ${decision} is not in docs/adr`);
  }
}

/** Variables, parameters, functions, types and properties. Imports, and the fields of others, have the names they have. */
function checkNames(file, text) {
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.ES2022, true);
  const visit = (node) => {
    const isDeclared =
      ts.isIdentifier(node) && node.parent.name === node && !isForeign(node.parent, file);
    if (isDeclared && VAGUE_NAME.test(node.text)) {
      const { line } = source.getLineAndCharacterOfPosition(node.getStart(source));
      errors.push(`${file}:${line + 1} "${node.text}": name it after what it holds or does`);
    }
    for (const comment of node.jsDoc ?? []) {
      const { line } = source.getLineAndCharacterOfPosition(comment.getStart(source));
      for (const problem of checkTags(comment.getText(source), node, text)) {
        errors.push(`${file}:${line + 1} ${problem}`);
      }
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
}

/** Finds errors and properties that a doc comment names but that do not exist. Errors may also be imported or built in. */
function* checkTags(comment, node, text) {
  for (const [, thrown] of comment.matchAll(/@throws([^@]*)/g)) {
    for (const [name] of thrown.matchAll(/(?<=^\s*\{?)[A-Z]\w+|\b[A-Z]\w*Error\b/g)) {
      const isImported = new RegExp(`^import [^;]*\\b${name}\\b`, 'm').test(text);
      if (!classes.has(name) && !(name in globalThis) && !isImported)
        yield `@throws ${name}: there is no such class`;
    }
  }
  if (comment.includes('@typedef')) return;
  const properties = new Set(findPropertyNames(node));
  for (const [, name] of comment.matchAll(/@property (\w+)/g)) {
    if (!properties.has(name)) yield `@property ${name}: the type below has no such property`;
  }
}

function* findPropertyNames(node) {
  if (ts.isStringLiteral(node)) yield node.text;
  if (ts.isIdentifier(node) && node.parent.name === node) yield node.text;
  const children = [];
  ts.forEachChild(node, (child) => void children.push(child));
  for (const child of children) yield* findPropertyNames(child);
}

/**
 * Tells whether a name is not ours to choose: fields of recorded events keep the names that they were recorded with.
 */
function isForeign(parent, file) {
  return (
    (ts.isPropertySignature(parent) && file.endsWith('.events.ts')) ||
    ts.isPropertyAccessExpression(parent) ||
    ts.isImportSpecifier(parent) ||
    ts.isExportSpecifier(parent) ||
    ts.isPropertyAssignment(parent)
  );
}

function read(file) {
  return fs.readFileSync(path.join(root, file), 'utf8');
}

/** Lists the files of the project that people read, from its root. */
function listFiles(folder) {
  const ours = fs.readdirSync(folder).filter((name) => /[.](md|yml|mjs|cjs)$/.test(name));
  const nested = FOLDERS.filter((name) => fs.existsSync(path.join(folder, name))).flatMap((name) =>
    fs
      .readdirSync(path.join(folder, name), { recursive: true, encoding: 'utf8' })
      .map((file) => `${name}/${file}`),
  );
  return [...ours, ...nested].filter(
    (file) => /[.](ts|mjs|cjs|md|sql|eta|yml|sh)$/.test(file) && !SKIPPED.test(file),
  );
}
