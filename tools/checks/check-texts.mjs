import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { IntlMessageFormat } from 'intl-messageformat';
import { format } from 'oxfmt';

/**
 * Checks the files of texts: every language has the texts of `en.json`, with their arguments and with the plurals of the
 * language. `--write` writes the arguments down for the compiler instead. Another folder may be named for tests.
 */
const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
const isWriting = process.argv.includes('--write');
const [folder = path.join(root, 'libs/translations')] = process.argv
  .slice(2)
  .filter((argument) => argument !== '--write');
/** For translators, about the texts that it names. */
const notesFile = path.join(folder, 'README.md');
const argumentsFile = path.join(folder, 'message-arguments.ts');
/** The types of arguments for the compiler, by the numbers that the parser of messages has for them. */
const ARGUMENT_TYPES = { 1: 'string', 2: 'number', 5: 'string', 6: 'number' };
const [LITERAL, PLURAL, POUND] = [0, 6, 7];
/** Counts on pages are smaller. Some languages have a category for millions, which would only repeat another one. */
const COUNTS = Array.from({ length: 1000 }, (_, count) => count);

const errors = [];
const catalogues = new Map(
  fs
    .readdirSync(folder)
    .filter((file) => file.endsWith('.json'))
    .map((file) => [file, readMessages(file)]),
);
const english = catalogues.get('en.json');
for (const [file, messages] of catalogues) checkFile(file, messages);
if (fs.existsSync(notesFile)) checkNotes();
const declarations = await renderDeclarations();
if (isWriting) fs.writeFileSync(argumentsFile, declarations);
else if (fs.readFileSync(argumentsFile, 'utf8') !== declarations)
  errors.push('message-arguments.ts does not have the arguments of en.json: npm run rules:write');

for (const error of errors) console.error(error);
if (errors.length > 0) process.exitCode = 1;
else console.log(`${catalogues.size} files have the same texts, with the same arguments`);

/** Parses the messages of a file, by their path such as `card.stampsOf`. */
function readMessages(file) {
  const messages = new Map();
  const visit = (section, prefix) => {
    for (const [name, text] of Object.entries(section)) {
      const key = `${prefix}${name}`;
      if (typeof text === 'string') messages.set(key, parse(file, key, text));
      else if (text?.constructor === Object) visit(text, `${key}.`);
      else errors.push(`${file}: ${key} is neither a text nor a section`);
    }
  };
  visit(JSON.parse(fs.readFileSync(path.join(folder, file), 'utf8')), '');
  return messages;
}

function parse(file, key, text) {
  const message = { types: {}, plurals: [] };
  if (text.trim() === '') errors.push(`${file}: ${key} is blank`);
  try {
    collect(new IntlMessageFormat(text, 'en', undefined, { ignoreTag: true }).getAst(), message);
  } catch (error) {
    errors.push(`${file}: ${key} is not an ICU message: ${error.message}`);
  }
  return message;
}

function collect(parts, message) {
  for (const { type, value, options, pluralType } of parts) {
    if (type === LITERAL || type === POUND) continue;
    if (!(type in ARGUMENT_TYPES))
      throw new Error(`{${value}} may be a text, number, plural or select`);
    // A text may show the number itself, and choose a plural by it.
    if (message.types[value] !== 'number') message.types[value] = ARGUMENT_TYPES[type];
    if (type === PLURAL) message.plurals.push({ name: value, options, type: pluralType });
    for (const option of Object.values(options ?? {})) collect(option.value, message);
  }
}

function checkFile(file, messages) {
  const [, language, form] = /^([a-z]{2,3})(?:@(formal|informal))?[.]json$/.exec(file) ?? [];
  if (!language || !catalogues.has(`${language}.json`)) {
    errors.push(
      `${file} is neither a language such as de.json nor a form of one such as de@formal.json`,
    );
    return;
  }
  for (const key of english.keys())
    if (!form && !messages.has(key)) errors.push(`${file}: ${key} is missing`);
  for (const [key, message] of messages) checkMessage(file, language, key, message);
}

function checkMessage(file, language, key, { types, plurals }) {
  const expected = english.get(key);
  if (!expected) return void errors.push(`${file}: ${key} is not in en.json`);
  if (renderTypes(types) !== renderTypes(expected.types))
    errors.push(
      `${file}: ${key} has ${renderTypes(types)}, but en.json ${renderTypes(expected.types)}`,
    );
  for (const plural of plurals) checkPlural(`${file}: ${key}`, language, plural);
}

/** Checks that each count has its category, and that each category can occur. */
function checkPlural(where, language, { name, options, type }) {
  const rules = new Intl.PluralRules(language, { type });
  const categories = rules.resolvedOptions().pluralCategories;
  const required = COUNTS.filter((count) => !(`=${count}` in options)).map((count) =>
    rules.select(count),
  );
  for (const category of new Set(required))
    if (!(category in options)) errors.push(`${where} lacks the plural "${category}" of {${name}}`);
  for (const option of Object.keys(options))
    if (!option.startsWith('=') && !categories.includes(option))
      errors.push(
        `${where} has the plural "${option}" of {${name}}, which is not a plural of ${language}`,
      );
}

function renderTypes(types) {
  const fields = Object.entries(types).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return fields.length === 0
    ? 'no arguments'
    : `{ ${fields.map(([name, type]) => `${name}: ${type}`).join('; ')} }`;
}

function checkNotes() {
  const keys = [...english.keys()];
  for (const [names] of fs.readFileSync(notesFile, 'utf8').matchAll(/(?<=^- )`[^:]*`(?=:)/gm))
    for (const [key] of names.matchAll(/[^`, ]+/g))
      if (!keys.some((name) => name === key || name.startsWith(`${key}.`)))
        errors.push(`README.md describes ${key}, which is not in en.json`);
}

/** Renders the arguments of the English messages. */
async function renderDeclarations() {
  const { printWidth, singleQuote } = JSON.parse(
    fs.readFileSync(path.join(root, '.oxfmtrc.json'), 'utf8'),
  );
  const lines = [...english]
    .filter(([, { types }]) => Object.keys(types).length > 0)
    .map(([key, { types }]) => `${JSON.stringify(key)}: ${renderTypes(types)};`);
  const { code } = await format(
    argumentsFile,
    `// Generated from en.json by \`npm run rules:write\`.
/** The arguments of messages, by their path in a file of texts. */
export type MessageArguments = {
${lines.join('\n')}
};
`,
    { printWidth, singleQuote },
  );
  return code;
}
