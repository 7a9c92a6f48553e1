import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

/** Checks the texts in views with the compiler: that each exists and gets its arguments. Other data is `any`. */
const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
const toHeader = (section) =>
  `
import type { PageFrame } from '#web/pages/view.js';
import type { Translations } from '#translations/translations.js';
type Shown<T> = T extends (...values: never[]) => unknown ? never : T;
declare const it: { page: PageFrame; t: ${section}; [name: string]: any };
declare const show: <T>(value: Shown<T>) => void;
declare const part: <D>(name: string, data?: { [N in keyof D]: Shown<D[N]> }) => string;
async function render(this: any) {
`.replaceAll('\n', ' ');

const listed = fs
  .readdirSync(path.join(root, 'libs/web'), { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.eta'))
  .map((file) => path.join(root, 'libs/web', file));
/** Views of tests, as if they were here. */
const named = process.argv.slice(2);
const views = new Map([
  ...listed.map((file) => [`${file}.ts`, toCode(fs.readFileSync(file, 'utf8'))]),
  ...named.map((file) => [
    path.join(root, 'libs/web', `${path.basename(file)}.ts`),
    toCode(fs.readFileSync(file, 'utf8')),
  ]),
]);
const { options } = ts.parseJsonConfigFileContent(
  ts.readConfigFile(path.join(root, 'tsconfig.json'), ts.sys.readFile).config,
  ts.sys,
  root,
);
const settings = {
  ...options,
  strict: false,
  incremental: false,
  noUnusedLocals: false,
  noUnusedParameters: false,
};
const host = ts.createCompilerHost(settings);
const { readFile, fileExists } = host;
host.readFile = (file) => views.get(file) ?? readFile(file);
host.fileExists = (file) => views.has(file) || fileExists(file);
const program = ts.createProgram([...views.keys()], settings, host);
const problems = [...views.keys()].flatMap((name) => {
  const source = program.getSourceFile(name);
  return [...program.getSyntacticDiagnostics(source), ...program.getSemanticDiagnostics(source)];
});
for (const { file, start, messageText } of problems) {
  const { line } = file.getLineAndCharacterOfPosition(start);
  const view = path.relative(root, file.fileName).replace(/[.]ts$/, '');
  console.error(`${view}:${line + 1}: ${ts.flattenDiagnosticMessageText(messageText, ' ')}`);
}
if (problems.length > 0) process.exitCode = 1;
else console.log(`${views.size} views use texts that exist`);

/**
 * Turns a view into code without its HTML, in which everything stands where it stands in the view. A part that gets the
 * texts of a section as `it.t` names it in its first comment: `t: of cardPages`.
 */
function toCode(view) {
  const [, section] = /\bt: of (\w+)/.exec(view) ?? [];
  const code = view
    .split(/(<%[\s\S]*?%>)/)
    .map((piece) => {
      const [, start, inside] = /^(<%[-_]?[=~]?)([\s\S]*?)[-_]?%>$/.exec(piece) ?? [];
      if (inside === undefined) return piece.replaceAll(/[^\n]/g, ' ');
      return /[=~]$/.test(start) ? `;show(${inside});` : `${inside};`;
    })
    .join('');
  return `${toHeader(section ? `Translations['${section}']` : 'never')}${code}\n}`;
}
