import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import { startService, type Client, type Service } from '../support/services/service.js';

/**
 * Generates clients from openapi.json with generators of others, as companies do, compiles them and stamps a card with
 * each. A proxy plays a later version of the service: every object has a field more, and every list of values that may
 * grow a new value.
 */

const OPENAPI_GENERATOR = '7.25.0';
const PYTHON_CLIENT = '0.29.1';
const OAPI_CODEGEN = 'v2.8.2';
const DOCUMENT = resolve('openapi.json');
const PROGRAMS = resolve('test/clients/generated-clients');
const SLOW = 600_000;

type Generator = {
  generate: string[][];
  /** The program to put beside the client, and its name there. */
  program?: [string, string];
  build?: string[][];
  run?: string[];
};

let folder: string;
let service: Service;
let proxy: http.Server;
let store: Client;

const jar = () => join(folder, 'openapi-generator.jar');
const python = () => join(folder, 'python/bin/python');
const fromJava = (language: string, properties: string) => [
  ['java', '-jar', jar(), 'generate', '-i', DOCUMENT, '-g', language, '-o', 'client'].concat(
    ['--global-property', 'apiTests=false,modelTests=false'],
    ['--additional-properties', properties],
  ),
];
const node = (...args: string[]) => [process.execPath, ...args];
const tsc = (...args: string[]) =>
  node(resolve('node_modules/typescript/bin/tsc'), '--strict', '--skipLibCheck', 'false').concat(
    ['--target', 'es2022', '--module', 'nodenext', '--lib', 'es2022,dom,dom.iterable'],
    ['--types', 'node', '--typeRoots', resolve('node_modules/@types'), '--outDir', 'built'],
    args,
  );
const GO_BUILD = [
  ['go', 'mod', 'init', 'example.com/inkpad'],
  ['go', 'mod', 'tidy'],
  ['go', 'build', '-o', 'program', '.'],
];

const GENERATORS: Record<string, () => Generator> = {
  'openapi-generator go': () => ({
    generate: fromJava('go', 'packageName=client,withGoMod=false'),
    program: ['openapi-generator.go.txt', 'main.go'],
    build: GO_BUILD,
    run: ['./program'],
  }),
  'openapi-generator java': () => ({
    generate: fromJava('java', 'library=native,useSingleRequestParameter=true'),
    program: ['Main.java', 'client/src/main/java/Main.java'],
    build: [['mvn', '-q', '-f', 'client', '-Dmaven.javadoc.skip=true', 'package']],
    run: ['java', '-cp', 'client/target/classes:client/target/lib/*', 'Main'],
  }),
  'openapi-generator csharp': () => ({ generate: fromJava('csharp', 'targetFramework=net8.0') }),
  'openapi-generator python': () => ({
    generate: fromJava('python', 'packageName=inkpad_gen'),
    program: ['python.py', 'client/main.py'],
    run: [python(), 'client/main.py'],
  }),
  'openapi-generator php': () => ({
    generate: fromJava('php', 'srcBasePath=lib'),
    program: ['php.php', 'client/main.php'],
    run: ['php', 'client/main.php'],
  }),
  'openapi-generator typescript-fetch': () => ({
    generate: fromJava('typescript-fetch', 'importFileExtension=.js'),
    program: ['typescript-fetch.mts.txt', 'main.mts'],
    build: [tsc('main.mts')],
    run: node('built/main.mjs'),
  }),
  'openapi-typescript': () => ({
    generate: [
      node(resolve('node_modules/openapi-typescript/bin/cli.js'), DOCUMENT, '-o', 'client.ts'),
    ],
    program: ['openapi-typescript.mts.txt', 'main.mts'],
    build: [tsc('main.mts')],
    run: node('built/main.mjs'),
  }),
  'openapi-python-client': () => ({
    generate: [
      [join(folder, 'python/bin/openapi-python-client'), 'generate', '--path', DOCUMENT].concat([
        '--meta',
        'none',
        '--output-path',
        'inkpad_gen',
        '--fail-on-warning',
      ]),
    ],
    program: ['openapi-python-client.py', 'main.py'],
    run: [python(), 'main.py'],
  }),
  'oapi-codegen': () => ({
    generate: [
      ['mkdir', 'client'],
      [
        join(folder, 'go/bin/oapi-codegen'),
        '-generate',
        'types,client',
        '-package',
        'client',
      ].concat(['-o', 'client/client.go', DOCUMENT]),
    ],
    program: ['oapi-codegen.go.txt', 'main.go'],
    build: GO_BUILD,
    run: ['./program'],
  }),
};

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'inkpad-generated-'));
  const artifact = `org.openapitools:openapi-generator-cli:${OPENAPI_GENERATOR}:jar`;
  await run(
    ['mvn', '-q', 'dependency:copy', `-Dartifact=${artifact}`, '-DoutputDirectory=.'].concat([
      '-Dmdep.stripVersion=true',
    ]),
  );
  copyFileSync(join(folder, 'openapi-generator-cli.jar'), jar());
  await run(['python3', '-m', 'venv', 'python']);
  const models = ['pydantic', 'urllib3', 'python-dateutil', 'typing-extensions', 'ruff'];
  await run([
    'python/bin/pip',
    'install',
    '-q',
    `openapi-python-client==${PYTHON_CLIENT}`,
    ...models,
  ]);
  const module = 'github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen';
  await run(['go', 'install', `${module}@${OAPI_CODEGEN}`], { GOBIN: join(folder, 'go/bin') });
  service = await startService({ RATE_LIMIT_PER_MINUTE: '1000000' });
  store = await service.newStore();
  proxy = await startLaterVersion(service.baseUrl);
}, SLOW);

afterAll(async () => {
  proxy.closeAllConnections();
  await new Promise((end) => proxy.close(end));
  await service.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** Runs a program. @returns its standard output @throws Error with its output unless it exits with 0 */
async function run(
  [program = '', ...args]: string[],
  environment: Record<string, string> = {},
  cwd = '.',
): Promise<{ stdout: string; stderr: string }> {
  const at = join(folder, cwd);
  const path = `${join(folder, 'python/bin')}:${process.env['PATH']}`;
  const command = program.includes('/') ? resolve(at, program) : program;
  const child = spawn(command, args, {
    cwd: at,
    env: { ...process.env, PATH: path, ...environment },
  });
  const output = { stdout: '', stderr: '' };
  for (const stream of ['stdout', 'stderr'] as const) {
    child[stream].setEncoding('utf8').on('data', (text: string) => (output[stream] += text));
  }
  const [code] = (await once(child, 'close')) as [number | null];
  if (code === 0) return output;
  const all = `${output.stdout}${output.stderr}`.slice(-4_000);
  throw new Error(`${program} ${args.join(' ')} exited with ${code}:\n${all}`);
}

type Json = Record<string, unknown>;

/** The names of fields whose values may grow. */
function findGrowingFields(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return [];
  const properties = (value as { properties?: Record<string, Json> }).properties ?? {};
  const own = Object.entries(properties).filter(([, schema]) => 'x-extensible-enum' in schema);
  return [...own.map(([name]) => name), ...Object.values(value).flatMap(findGrowingFields)];
}

/** Stands in front of the service and adds to its responses what a later version may add. */
async function startLaterVersion(baseUrl: string): Promise<http.Server> {
  const growing = new Set(findGrowingFields(JSON.parse(readFileSync(DOCUMENT, 'utf8'))));
  const extend = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(extend);
    if (typeof value !== 'object' || value === null) return value;
    const fields = Object.entries(value).map(([name, schema]) => [
      name,
      growing.has(name) && typeof schema === 'string' ? 'added_later' : extend(schema),
    ]);
    return { ...(Object.fromEntries(fields) as Json), added_later: { by: ['a later version'] } };
  };
  const forward = async (request: http.IncomingMessage, response: http.ServerResponse) => {
    const body = await buffer(request);
    const { authorization = '', 'content-type': type = 'application/json' } = request.headers;
    const result = await fetch(baseUrl + request.url, {
      method: request.method ?? 'GET',
      headers: { authorization, 'content-type': type },
      ...(body.length > 0 && { body }),
    });
    response.writeHead(result.status, { 'content-type': 'application/json' });
    response.end(JSON.stringify(extend(await result.json())));
  };
  const server = http.createServer((request, response) => {
    forward(request, response).catch((error: unknown) => response.destroy(Object(error)));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server;
}

/** Warnings that say that a part of the document was dropped; other warnings rename reserved words. */
const DROPPED = /omitting|ignoring|unsupported|not supported|not be generated|duplicate/i;
/** The example of a picture's body is none that Java's generator shows, which drops no part of the API. */
const HARMLESS = /complex example/i;

describe('clients of other generators', () => {
  it.each(Object.keys(GENERATORS))(
    '%s generates, compiles and stamps a card, also on a later version of the service',
    async (name) => {
      const generator = GENERATORS[name]?.();
      if (!generator) throw new Error(`no generator ${name}`);
      const place = name.replaceAll(' ', '-');
      mkdirSync(join(folder, place));
      for (const command of generator.generate) {
        const { stdout, stderr } = await run(command, {}, place);
        const lines = `${stdout}${stderr}`.split('\n').filter((line) => line.includes('WARN'));
        expect(lines.filter((line) => DROPPED.test(line) && !HARMLESS.test(line))).toEqual([]);
      }
      const { program: [source, target] = [], build = [], run: command } = generator;
      if (source && target) copyFileSync(join(PROGRAMS, source), join(folder, place, target));
      for (const step of build) await run(step, {}, place);
      if (!command) return;
      const { customer, customerCard } = await enrol(store);
      await store.post(`${store.store}/webhook_subscriptions`, {
        webhook_subscription: { target_url: 'https://example.com/hook', events: ['*'] },
      });
      const { body: cards } = await store.get<unknown[]>(`${store.store}/cards`);
      const { body: hooks } = await store.get<unknown[]>(`${store.store}/webhook_subscriptions`);
      const ids = { ACCOUNT: store.accountId, CUSTOMER: customer.id, CARD: customerCard.id };
      for (const [url, stamps] of [
        [service.baseUrl, 2],
        [`http://127.0.0.1:${(proxy.address() as AddressInfo).port}`, 4],
      ] as const) {
        const { stdout } = await run(
          command,
          {
            INKPAD_URL: url,
            INKPAD_TOKEN: store.token ?? '',
            ...Object.fromEntries(Object.entries(ids).map(([key, id]) => [key, String(id)])),
          },
          place,
        );
        const expected = `${cards.length} cards, ${hooks.length} subscriptions, ${stamps} stamps`;
        expect(stdout.trim().split('\n').at(-1)).toBe(expected);
      }
    },
    SLOW,
  );
});
