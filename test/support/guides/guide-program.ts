import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import type { Language } from './guide-parser.js';

/** The samples of a guide in one language as a program, which waits for an address after each of them. */

type Programmed = Exclude<Language, 'sh' | 'csharp'>;
type Place = { folder: string; python: string };

const WAITS: Record<Programmed, (address: string) => string> = {
  ts: (address) => `\nawait fetch('${address}');\n`,
  python: (address) =>
    `\nimport urllib.request\nurllib.request.urlopen("${address}", timeout=600).read()\n`,
  java: (address) => `\nnew java.net.URL("${address}").openStream().close();\n`,
  go: (address) => `\nif _, err := http.Get("${address}"); err != nil {\n\treturn err\n}\n`,
};

/**
 * Writes the program, and compiles it where the language needs that.
 * @returns the command that runs it
 */
export function writeProgram(
  language: Programmed,
  name: string,
  pieces: string[],
  address: string,
  { folder, python }: Place,
): string[] {
  const code = pieces.map((piece) => piece + WAITS[language](address)).join('\n');
  if (language === 'python') {
    writeFileSync(join(folder, `${name}.py`), code);
    return [python, join(folder, `${name}.py`)];
  }
  if (language === 'ts') {
    const compilerOptions = { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext };
    writeFileSync(
      join(folder, `${name}.mjs`),
      ts.transpileModule(code, { compilerOptions }).outputText,
    );
    return [process.execPath, join(folder, `${name}.mjs`)];
  }
  const sources = join(folder, `${name}-${language}`);
  mkdirSync(sources, { recursive: true });
  return language === 'java'
    ? compileJava(code, folder, sources)
    : compileGo(code, folder, sources);
}

function compileJava(code: string, folder: string, sources: string): string[] {
  copyFileSync(join(folder, 'Inkpad.java'), join(sources, 'Inkpad.java'));
  const text = `class Guide {\npublic static void main(String[] args) throws Exception {\n${code}}\n}\n`;
  writeFileSync(join(sources, 'Guide.java'), text);
  compile(['javac', '-Xlint:all', '-Werror', 'Inkpad.java', 'Guide.java'], sources);
  return ['java', '-cp', sources, 'Guide'];
}

function compileGo(code: string, folder: string, sources: string): string[] {
  copyFileSync(join(folder, 'inkpad.go'), join(sources, 'inkpad.go'));
  const head = 'package main\n\nimport (\n\t"fmt"\n\t"net/http"\n)\n';
  const main = 'func main() {\n\tif err := guide(); err != nil {\n\t\tpanic(err)\n\t}\n}\n';
  const text = `${head}\n${main}\nfunc guide() error {\n${code}return nil\n}\n`;
  writeFileSync(join(sources, 'main.go'), text);
  writeFileSync(join(sources, 'go.mod'), 'module guide\n\ngo 1.21\n');
  compile(['go', 'vet', '.'], sources);
  compile(['go', 'build', '-o', 'guide', '.'], sources);
  return [join(sources, 'guide')];
}

/** Builds a file that a guide starts with `go run`, whose own process would outlive that command. */
export function buildGoFile(file: string, folder: string): string[] {
  const name = file.replace(/\.go$/, '');
  compile(['go', 'vet', file], folder);
  compile(['go', 'build', '-o', name, file], folder);
  return [join(folder, name)];
}

function compile([program = '', ...rest]: string[], cwd: string): void {
  const { status, stdout, stderr } = spawnSync(program, rest, { cwd, encoding: 'utf8' });
  if (status !== 0) throw new Error(`${program} ended with ${status}:\n${stdout}${stderr}`);
}
