import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

/**
 * Checks the knowledge that imports do not show: the platform names nothing of the product, whoever reads the table of
 * another context reads its columns, not paths into `state`, nobody asks the machine what time it is, and SQL on TypeORM's
 * connections goes through `query` as all other.
 */
const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');

const PLATFORM = 'libs/platform/';

/** They work before there is a database, or in a test. */
const READS_MACHINE_CLOCK =
  /^(libs\/platform\/kernel\/(clock|log|log-lines)|libs\/configuration\/config|.*[.](spec|contract))[.]ts$/;

// `import` is a keyword of the language.
const ALSO_OF_PLATFORM = new Set(['accounts', 'exports', 'history', 'imports', 'statistics']);
/** The names of the loyalty contexts, but for those that the platform has too, and further words. */
const PRODUCT_WORDS = new Set([
  ...fs
    .readdirSync(path.join(root, 'libs/loyalty'))
    .flatMap((name) => (ALSO_OF_PLATFORM.has(name) ? [] : [name, name.replace(/s$/, '')])),
  ...splitWords(`
    loyalty membership memberships shop shops signup signups stamp stamped stampings stamps store stores user users
    wallet wallets webhook webhooks`),
]);
/** Pairs in which such a word means something else. */
const OTHER_MEANINGS = new Set([
  'event store',
  'event stores',
  'no store',
  // of AsyncLocalStorage
  'get store',
  // of getrusage(2)
  'user cpu',
  'user agent',
  'database user',
  'current user',
  'esdb user',
]);

const errors = [];
const owners = readOwners();
for (const file of ['libs', 'apps', 'tools'].flatMap(listFiles)) {
  const text = fs.readFileSync(path.join(root, file), 'utf8');
  if (!/^(tools|apps\/cli)\//.test(file) && !READS_MACHINE_CLOCK.test(file)) checkClock(file, text);
  checkQueries(file, text);
  if (file.startsWith(PLATFORM)) checkWords(file, text);
  else if (/\bstate\s*->/.test(text)) checkPaths(file, text);
}
for (const error of errors) console.error(error);
if (errors.length > 0) {
  console.error(`${errors.length} errors: knowledge in the wrong place`);
  process.exitCode = 1;
}

function listFiles(folder) {
  return fs
    .readdirSync(path.join(root, folder), { recursive: true })
    .map((name) => `${folder}/${name}`)
    .filter((name) => name.endsWith('.ts'))
    .sort();
}

/** Lists the words of a text; the parts of an identifier are words of their own. */
function splitWords(text) {
  return text
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1 $2')
    .replaceAll(/([A-Z]+)([A-Z][a-z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^a-z]+/)
    .filter((word) => word !== '');
}

function checkWords(file, text) {
  // Where the event store is at hand, `store` alone is its variable.
  const isStoreAVariable = /\bEventStore\b/.test(text);
  for (const [i, line] of text.split('\n').entries()) {
    const code = isStoreAVariable
      ? line.replace(/^(?!\s*(?:\/?\*|\/\/)).*/, removeVariables)
      : line;
    for (const word of new Set(findProductWords(code))) {
      errors.push(
        `${file}:${i + 1} "${word}" belongs to the product: the platform must not know it`,
      );
    }
  }
}

/** The clock of a machine may be wrong: times come from the database's (ADR-0098), durations from `performance.now()`. */
function checkClock(file, text) {
  for (const [i, line] of text.split('\n').entries()) {
    if (!/\bnew Date\(\)|\bDate\.now\b/.test(line)) continue;
    errors.push(
      `${file}:${i + 1} reads the clock of the machine: use getNow() of kernel/clock.ts, or performance.now() for a duration`,
    );
  }
}

/** Checks that no SQL goes through TypeORM's `query`, whose results depend on the statement (ADR-0021). */
function checkQueries(file, text) {
  const typed = text.matchAll(/(\w+)\??: (?:EntityManager|DataSource|Repository<)/g);
  const names = ['manager', 'dataSource', 'source', ...Array.from(typed, ([, name]) => name)];
  const calls = new RegExp(String.raw`\b(${names.join('|')})\??\s*\.query\s*[(<]`, 'g');
  for (const { index, 1: name } of text.matchAll(calls)) {
    const line = text.slice(0, index).split('\n').length;
    errors.push(`${file}:${line} calls ${name}.query: use query() of database/connection.ts`);
  }
}

function removeVariables(code) {
  return code.replaceAll(/(?<!['"`\w])store(?!['"`\w])/g, '_');
}

function findProductWords(line) {
  const list = splitWords(line);
  return list.filter((word, i) => {
    const pairs = [`${list[i - 1]} ${word}`, `${word} ${list[i + 1]}`];
    return PRODUCT_WORDS.has(word) && !pairs.some((pair) => OTHER_MEANINGS.has(pair));
  });
}

/** Reads which context has which table: each says so in a file of its entities. */
function readOwners() {
  const tables = new Map();
  for (const file of listFiles('libs').filter((name) => name.endsWith('.entity.ts'))) {
    const text = fs.readFileSync(path.join(root, file), 'utf8');
    for (const [, table] of text.matchAll(/\btable: '(\w+)'/g))
      tables.set(table, path.dirname(file));
  }
  return tables;
}

function checkPaths(file, text) {
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.ES2022, true);
  const visit = (node) => {
    if (ts.isStringLiteralLike(node) || ts.isTemplateExpression(node)) {
      for (const table of findTablesWithPaths(node.getText(source))) {
        const owner = owners.get(table);
        if (owner === undefined || owner === path.dirname(file)) continue;
        const { line } = source.getLineAndCharacterOfPosition(node.getStart(source));
        errors.push(
          `${file}:${line + 1} reads a path into the state of ${table}: add a column that is generated (of customer_cards: derived) from it, which ${owner} owns`,
        );
      }
    } else ts.forEachChild(node, visit);
  };
  visit(source);
}

/** Finds the tables of a statement whose `state` it takes apart. */
function findTablesWithPaths(sql) {
  const named = [...sql.matchAll(/\b(?:from|join|update)\s+(\w+)(?:\s+as)?(?:\s+(\w+))?/gi)];
  const tables = new Set();
  for (const [, alias] of sql.matchAll(/(?:\b(\w+)[.])?\bstate\s*->/g)) {
    for (const [, table, other] of named) {
      if (alias === undefined || alias === other || alias === table) tables.add(table);
    }
  }
  return tables;
}
