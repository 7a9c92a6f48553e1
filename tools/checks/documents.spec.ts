import 'reflect-metadata';
import { describe, expect, it } from '@jest/globals';
import { RequestMethod } from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { createProgramCommands } from '../../apps/cli/programs.js';
import { createPreviewApp } from '../generate/api-documents.js';

/** Checks that every route, command, script, setting and link that a document names exists. */

const documents = listFiles('*.md');

/** Variables of Node.js, OpenTelemetry, Compose, tests and examples. */
const FOREIGN = new Set(
  `NODE_ENV NODE_COMPILE_CACHE NODE_EXTRA_CA_CERTS NODE_OPTIONS ALL_PROXY HTTPS_PROXY HTTP_PROXY NO_PROXY NODE_USE_ENV_PROXY OTEL_EXPORTER_OTLP_HEADERS OTEL_TRACES_SAMPLER COMPOSE_FILE
  STORED_EVENTS FUZZ_SEED PAGE_TIMES INKPAD_URL INKPAD_TOKEN INKPAD_ADMIN_TOKEN WEBHOOK_SECRET EVENTS_DIR SKIP_PARTS`.split(
    /\s+/,
  ),
);

type Named = { where: string; name: string };

/** Each match of the pattern in the documents, by its first group. */
function named(pattern: RegExp): Named[] {
  return documents.flatMap((file) =>
    readFileSync(file, 'utf8')
      .split('\n')
      .flatMap((line, i) =>
        [...line.matchAll(pattern)].map(([, name = '']) => ({ where: `${file}:${i + 1}`, name })),
      ),
  );
}

/** Lists files of the repository, those that are not committed yet among them. */
function listFiles(pattern: string): string[] {
  const args = ['ls-files', '--cached', '--others', '--exclude-standard', pattern];
  const files = execFileSync('git', args, { encoding: 'utf8' }).trim().split('\n');
  return files.filter((file) => existsSync(file));
}

function missing(
  names: Named[],
  exists: (name: string, where: string) => boolean,
  expectedCount = 20,
): string[] {
  expect(names.length).toBeGreaterThan(expectedCount);
  return names
    .filter(({ name, where }) => !exists(name, where))
    .map(({ where, name }) => `${where} ${name}`);
}

describe('the documents name only what is there', () => {
  it('of scripts of package.json', () => {
    const { scripts } = JSON.parse(readFileSync('package.json', 'utf8')) as { scripts: object };
    const names = named(/npm run (?:-s )?([a-z][a-z0-9:-]*)/g);
    expect(missing(names, (name) => name in scripts)).toEqual([]);
  });

  it('of commands of the CLI', () => {
    const folder = 'apps/cli';
    const sources = readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts'))
      .map((name) => readFileSync(join(folder, name), 'utf8'));
    const commands = sources.flatMap((text) =>
      [...text.matchAll(/\.command\('([a-z:-]+)'\)/g)].map(([, name = '']) => name),
    );
    const nouns = [...new Set(commands.map((name) => name.split(':')[0]))].join('|');
    const names = named(new RegExp(`(?<![a-z./:-])((?:${nouns}):[a-z][a-z-]*)`, 'g'));
    expect(missing(names, (name) => commands.includes(name))).toEqual([]);
    commands.push(...createProgramCommands().map((command) => command.name()));
    const run = named(/(?:npx|dispatcher|api|migrate|--) inkpad ([a-z][a-z:-]*)/g);
    expect(missing(run, (name) => commands.includes(name))).toEqual([]);
  });

  it('of settings', () => {
    const settings = exampleSettings();
    const names = named(/(?:`|^)([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)(?:=|`)/g)
      // They also name constants of the code and of others.
      .filter(({ where }) => !/^(docs\/adr|test\/support\/emulators)\//.test(where));
    const exists = (name: string) =>
      FOREIGN.has(name) || settings.has(name) || settings.has(name.replace(/_FILE$/, ''));
    expect(missing(names, exists)).toEqual([]);
  });

  it('of routes', async () => {
    const routes = await routesOfApi();
    const names = named(/((?:GET|POST|PUT|PATCH|DELETE) (?:…|\{public\})?\/[^\s`|,;)]*)/g);
    expect(missing(names, (name) => routes.some((route) => leadsTo(name, route)))).toEqual([]);
  });

  it('of files', () => {
    const names = named(
      /`(?:node )?((?:apps|bench|clients|data|deploy|docs|libs|test|tools)\/[\w./-]+[.]\w+)/g,
    );
    const exists = (name: string, where: string) =>
      existsSync(name) || existsSync(join(dirname(where), name));
    expect(missing(names, exists)).toEqual([]);
  });

  it('of tests, by a part of their paths', () => {
    const tests = listFiles('*spec.ts');
    const names = named(/(?:npm test --|--testPathPatterns) '?([^\s'`]+)/g);
    const exists = (name: string) => tests.some((file) => new RegExp(name).test(file));
    expect(missing(names, exists, 5)).toEqual([]);
  });

  it('of files and headings that they link to', () => {
    const names = named(/\]\(((?!https?:|mailto:)[^)\s]+)\)/g);
    const exists = (link: string, where: string) => {
      const [file = '', anchor] = link.split('#');
      const from = where.replace(/:\d+$/, '');
      const path = file === '' ? from : join(dirname(from), file);
      return existsSync(path) && (anchor === undefined || anchorsOf(path).has(anchor));
    };
    expect(missing(names, exists)).toEqual([]);
  });
});

function exampleSettings(): Set<string> {
  const lines = readFileSync('.env.example', 'utf8').matchAll(/^#([A-Z0-9_]+)=/gm);
  return new Set([...lines].map(([, name = '']) => name));
}

type Route = { method: string; path: string[] };

async function routesOfApi(): Promise<Route[]> {
  const app = await createPreviewApp();
  return [...app.get(ModulesContainer).values()].flatMap(({ controllers }) =>
    [...controllers.values()].flatMap(({ metatype }) => (metatype ? routesOf(metatype) : [])),
  );
}

function routesOf(controller: Function): Route[] {
  const prototype = controller.prototype as Record<string, object>;
  const above = pathsOf(controller);
  return Object.getOwnPropertyNames(prototype).flatMap((name) => {
    const handler = prototype[name] ?? {};
    const method = Reflect.getMetadata('method', handler) as RequestMethod | undefined;
    if (method === undefined) return [];
    return above.flatMap((start) =>
      pathsOf(handler).map((end) => ({
        method: RequestMethod[method],
        path: segments(`${start}/${end}`),
      })),
    );
  });
}

function pathsOf(decorated: object): string[] {
  return [Reflect.getMetadata('path', decorated) as string | string[]].flat();
}

function segments(path: string): string[] {
  return path.split('/').filter((segment) => segment !== '');
}

/** Documents name the end of a path, with names of their own for the ids in it, or an example of one. */
function leadsTo(name: string, route: Route): boolean {
  const [method = '', rawPath = ''] = name.split(' ');
  const path = segments(rawPath.replace(/[?#].*|^…|^\{public\}/g, '').replace(/[.:]$/, ''));
  const end = route.path.slice(-path.length);
  return (
    route.method === method &&
    end.length === path.length &&
    end.every((segment, i) => segment === path[i] || segment.startsWith(':'))
  );
}

/** As GitHub makes them. */
function anchorsOf(path: string): Set<string> {
  const headings = [...readFileSync(path, 'utf8').matchAll(/^#+ (.*)$/gm)];
  return new Set(
    headings.map(([, text = '']) =>
      text
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
        .replaceAll(' ', '-'),
    ),
  );
}
