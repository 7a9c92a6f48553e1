import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

/** Checks the texts in views with the compiler: that each exists and gets its arguments. What else a view gets is `any`. */
const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const HEADER = `
import type { PageFrame } from '#pages/view.js';
declare const it: { page: PageFrame; [name: string]: any };
declare const part: (name: string, data?: object) => string;
async function render(this: any) {
`.replaceAll('\n', ' ');

const views = new Map(
  fs
    .readdirSync(path.join(root, 'libs/web'), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.eta'))
    .map((file) => path.join(root, 'libs/web', file))
    .map((file) => [`${file}.ts`, toCode(fs.readFileSync(file, 'utf8'))]),
);
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

/** Turns a view into code without its HTML, in which everything stands where it stands in the view. */
function toCode(view) {
  const code = view
    .split(/(<%[\s\S]*?%>)/)
    .map((piece) => {
      const [, start, inside] = /^(<%[-_]?[=~]?)([\s\S]*?)[-_]?%>$/.exec(piece) ?? [];
      if (inside === undefined) return piece.replaceAll(/[^\n]/g, ' ');
      const isValue = /[=~]$/.test(start);
      return `${(isValue ? '(' : '').padStart(start.length)}${inside}${isValue ? ')' : ' '};`.padEnd(
        piece.length,
      );
    })
    .join('');
  return `${HEADER}${code}\n}`;
}
