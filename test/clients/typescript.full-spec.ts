import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { eventually } from '../support/jest/eventually.js';
import { findFreePort, startCommand, type Program } from '../support/services/program.js';
import { startService, type Client, type Service } from '../support/services/service.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import { startDispatcher } from '../support/services/webhook-dispatcher.js';

/** Uses the package as a new user does: packs it, installs it into an empty folder, and runs the examples of its README. */

const SLOW = 300_000;
const CLIENT = resolve('clients/typescript');
const README = readFileSync(join(CLIENT, 'README.md'), 'utf8');
const [EXAMPLE = '', RECEIVER = ''] = [...README.matchAll(/^```ts\n([^]*?)^```/gm)].map(
  ([, code = '']) => code,
);

/** Calls an operation without parameters, once as a list and once page by page. */
const STORES = `import type { InkpadClient } from '@inkpad/client';
export async function show(inkpad: InkpadClient): Promise<void> {
  for (const { name } of await inkpad.listAccounts()) console.log(name);
  for await (const { name } of inkpad.iterate('listAccounts')) console.log(name);
}
`;

/** Uses the client without anything of Node.js. */
const STRICT = `import { createClient, InkpadError, InsufficientStampsError, type ApiResponse, type InkpadClient, type Schemas } from '@inkpad/client';
import { verifyWebhook, WebhookVerificationError } from '@inkpad/client/webhooks';
const own = createClient({ baseUrl: 'https://a.example', token: 't', accountId: 1, headers: { prefer: 'handling=strict' } });
const any = createClient({ baseUrl: 'https://a.example', token: 't' });
export const list = (client: InkpadClient) => client.listCards({ path: { account_id: 1 } });
export const cards: Schemas['Card'][] = [...(await list(own)), ...(await list(any)), ...(await own.listCards())];
export const card = await own.getCard({ path: { id: 7 } });
// @ts-expect-error without an id
own.getCard();
// @ts-expect-error without a store
any.getCard({ path: { id: 7 } });
for await (const { id } of own.iterate('listCustomers')) id.toFixed();
export const find = (search?: string) => own.listCustomers({ query: { search } });
const path = { customer_id: 1, id: 2 };
const stamped: ApiResponse<Schemas['CustomerCardDetail']> = await own.stampCustomerCard({ path, body: { stamps: 1 }, headers: { 'x-till': '1' } }).withResponse();
const webhook = await own.createWebhookSubscription({ body: { events: ['stamp.earned'], target_url: 'https://b.example', headers: { 'x-key': 'k' } } });
export const names: string[] = Object.keys(webhook.headers);
export const left: string | null = stamped.headers.get('ratelimit-remaining') ?? stamped.requestId;
export function describe(error: unknown): string | null {
  if (error instanceof InsufficientStampsError) return error.code satisfies 'insufficient_stamps';
  if (error instanceof InkpadError) return error.headers?.get('x-request-id') ?? error.code;
  return error instanceof WebhookVerificationError ? error.message : null;
}
export const { type } = verifyWebhook({ body: '', headers: {} }, 'whsec_');
`;

type Operation = { operationId: string; 'x-codeSamples': { label: string; source: string }[] };

let folder: string;
/** The files of the package. */
let paths: string[];
let packed: string;
const programs: Program[] = [];

function run(command: string[], cwd: string): string {
  const [program = '', ...rest] = command;
  const { status, stdout, stderr } = spawnSync(program, rest, { cwd, encoding: 'utf8' });
  if (status !== 0)
    throw new Error(`${command.join(' ')} ended with ${status}:
${stdout}${stderr}`);
  return stdout;
}

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'inkpad-stranger-'));
  const source = join(folder, 'source');
  for (const part of ['README.md', 'LICENSE', 'package.json', 'mark-commonjs.mjs', 'src', 'test']) {
    cpSync(join(CLIENT, part), join(source, part), { recursive: true });
  }
  for (const file of ['tsconfig.json', 'tsconfig.cjs.json']) {
    cpSync(join(CLIENT, file), join(source, file));
  }
  const npm = ['npm', 'install', '--no-audit', '--no-fund'];
  run(npm, source);
  const [tarball] = JSON.parse(run(['npm', 'pack', '--json', '--silent'], source)) as {
    filename: string;
    files: { path: string }[];
  }[];
  paths = tarball?.files.map(({ path }) => path) ?? [];
  packed = join(source, tarball?.filename ?? '');
  const empty = join(folder, 'empty');
  mkdirSync(empty);
  writeFileSync(join(empty, 'package.json'), '{ "type": "module" }');
  const { devDependencies } = JSON.parse(readFileSync(join(CLIENT, 'package.json'), 'utf8')) as {
    devDependencies: Record<string, string>;
  };
  const types = ['@types/node', 'typescript'].map((name) => `${name}@${devDependencies[name]}`);
  run([...npm, packed, ...types], empty);
  for (const [name, code] of Object.entries({ example: EXAMPLE, receiver: RECEIVER })) {
    writeFileSync(join(empty, `${name}.ts`), code);
    writeFileSync(join(empty, `${name}.cts`), withoutTopLevelAwait(code));
  }
  writeFileSync(join(empty, 'stores.ts'), STORES);
  mkdirSync(join(empty, 'strict'));
  writeFileSync(join(empty, 'strict/consumer.ts'), STRICT);
}, SLOW);

afterEach(async () => {
  await Promise.all(programs.splice(0).map((program) => program.kill('SIGTERM')));
});

afterAll(() => rmSync(folder, { recursive: true }), SLOW);

/** Wraps code that awaits at its top level, which CommonJS cannot. */
function withoutTopLevelAwait(code: string): string {
  const [, imports = '', rest = ''] = /^((?:import [^;]*;\n)*)([^]*)$/.exec(code) ?? [];
  return code.includes('for await (const reward')
    ? `${imports}void (async () => {${rest}})();`
    : code;
}

const RESOLUTIONS: [string, object, string[]][] = [
  ['node16, ES modules', { module: 'node16' }, ['*.ts']],
  ['node16, CommonJS', { module: 'node16' }, ['*.cts']],
  ['nodenext', { module: 'nodenext' }, ['*.ts', '*.cts']],
  ['a bundler', { module: 'preserve', moduleResolution: 'bundler' }, ['*.ts']],
  ['node10', { module: 'esnext', moduleResolution: 'node10', ignoreDeprecations: '6.0' }, ['*.ts']],
];

it('the package of the TypeScript client contains its build, README and licence, and nothing else', () => {
  expect(paths).toEqual(expect.arrayContaining(['LICENSE', 'README.md', 'package.json']));
  expect(paths.filter((path) => !/^(dist\/|LICENSE|README.md|package.json)/.test(path))).toEqual(
    [],
  );
});

it('the build of the service packs the same TypeScript client as npm', () => {
  const { typescript } = JSON.parse(readFileSync('dist/docs/clients/packages.json', 'utf8')) as {
    typescript: string;
  };
  for (const [name, file] of [
    ['npm', packed],
    ['build', resolve('dist/docs/clients', typescript)],
  ] as const) {
    mkdirSync(join(folder, name));
    run(['tar', 'xzf', file], join(folder, name));
  }
  const list = (name: string) => run(['find', '.', '-type', 'f'], join(folder, name)).split('\n');
  expect(list('build').sort()).toEqual(list('npm').sort());
  for (const file of list('npm').filter(Boolean)) {
    const read = (name: string) => readFileSync(join(folder, name, file), 'utf8');
    expect([file, read('build')]).toEqual([file, read('npm')]);
  }
});

it('the TypeScript client builds and passes its tests without the rest of the repository', () => {
  const output = run(['npm', 'test', '--', '--test-reporter=tap'], join(folder, 'source'));
  expect(output).toMatch(/# pass [1-9]/);
});

it('the TypeScript samples of openapi.json compile against the client', () => {
  const source = join(folder, 'source');
  const { paths: operations } = JSON.parse(readFileSync('openapi.json', 'utf8')) as {
    paths: Record<string, Record<string, Operation>>;
  };
  mkdirSync(join(source, 'examples'));
  for (const operation of Object.values(operations).flatMap((path) => Object.values(path))) {
    const example = operation['x-codeSamples'].find(({ label }) => label === 'TypeScript');
    const file = join(source, 'examples', `${operation.operationId}.ts`);
    writeFileSync(file, example?.source ?? 'no example');
  }
  const compilerOptions = { noEmit: true, rootDir: '.', noUnusedLocals: false };
  const config = { extends: './tsconfig.json', include: ['examples'], compilerOptions };
  writeFileSync(join(source, 'tsconfig.examples.json'), JSON.stringify(config));
  expect(run(['npx', '--no-install', 'tsc', '-p', 'tsconfig.examples.json'], source)).toBe('');
});

it.each(RESOLUTIONS)('the TypeScript client has types for %s', (_, options, include) => {
  const empty = join(folder, 'empty');
  const compilerOptions = {
    strict: true,
    target: 'es2022',
    types: ['node'],
    noEmit: true,
    ...options,
  };
  writeFileSync(join(empty, 'tsconfig.json'), JSON.stringify({ compilerOptions, include }));
  expect(run(['npx', '--no-install', 'tsc'], empty)).toBe('');
});

it.each([['es2022', 'dom'], ['es2022']])(
  'the types of the TypeScript client need nothing but lib %s',
  (...lib) => {
    const strict = join(folder, 'empty/strict');
    const compilerOptions = {
      strict: true,
      exactOptionalPropertyTypes: true,
      noUncheckedIndexedAccess: true,
      skipLibCheck: false,
      target: 'es2022',
      module: 'nodenext',
      lib,
      types: [],
      noEmit: true,
    };
    writeFileSync(join(strict, 'tsconfig.json'), JSON.stringify({ compilerOptions }));
    expect(run(['npx', '--no-install', 'tsc', '-p', '.'], strict)).toBe('');
  },
);

describe('the examples in the README of the TypeScript client', () => {
  let service: Service;
  let dispatcher: Program;
  let store: Client;
  let card: { customer_id: number; id: number };

  beforeAll(async () => {
    service = await startService({ WEBHOOK_ALLOW_INSECURE_TARGETS: 'true' });
    dispatcher = await startDispatcher(service);
    store = await service.newStore();
    const { customerCard, customer } = await enrol(store, { rewards: [2] });
    card = { customer_id: customer.id, id: customerCard.id };
    const compilerOptions = { module: 'node16', target: 'es2022', types: ['node'], outDir: 'out' };
    const config = { compilerOptions, include: ['*.ts', '*.cts'] };
    writeFileSync(join(folder, 'empty/tsconfig.json'), JSON.stringify(config));
    run(['npx', '--no-install', 'tsc'], join(folder, 'empty'));
  }, SLOW);

  afterAll(async () => {
    await dispatcher.kill('SIGTERM');
    await service.stop();
  }, SLOW);

  it.each(['example.js', 'example.cjs'])(
    'stamp a card, list rewards and print an error: %s',
    async (file) => {
      const path = join(folder, 'empty/out', file);
      const pathArguments = `{ account_id: ${store.accountId}, customer_id: ${card.customer_id}, id: ${card.id} }`;
      const code = readFileSync(path, 'utf8')
        .replace(/\{ account_id: 1, customer_id: 31, id: 12 \}/, pathArguments)
        .replaceAll('account_id: 1 ', `account_id: ${store.accountId} `)
        .replace('receipt-1001', `receipt of ${file}`);
      const env = { INKPAD_URL: service.baseUrl, INKPAD_TOKEN: `${store.token}` };
      const outputs: string[] = [];
      for (const text of [code, code.replace(/id: \d+ \}/, 'id: 999999 }')]) {
        writeFileSync(path, text);
        const program = startCommand([process.execPath, path], env);
        expect([await program.exitCode, program.output()]).toEqual([0, expect.any(String)]);
        outputs.push(program.output());
      }
      expect(outputs[0]).toMatch(/^\d [^]*name: 'Reward at 2'[^]*\nReward at 2\n$/);
      expect(outputs[1]).toMatch(/^404 not_found \{\} [^]*\nReward at 2\n$/);
    },
    SLOW,
  );

  it.each(['receiver.js', 'receiver.cjs'])(
    'receive each webhook once: %s',
    async (file) => {
      const ownStore = await service.newStore();
      const port = await findFreePort();
      const url = `http://127.0.0.1:${port}/`;
      const hooks = `${ownStore.store}/webhook_subscriptions`;
      const { body: subscription } = await ownStore.post<{ id: number; secret: string }>(hooks, {
        events: ['stamp.earned'],
        target_url: url,
      });
      const environment = { WEBHOOK_SECRET: subscription.secret, PORT: String(port) };
      const receiver = startCommand(
        [process.execPath, join(folder, 'empty/out', file)],
        environment,
      );
      programs.push(receiver);
      await eventually(
        () =>
          fetch(url, { method: 'POST', body: '{}' }).then(
            ({ status }) => status,
            () => 0,
          ),
        (status) => status === 401,
      );
      const { path } = await enrol(ownStore);
      expect((await ownStore.stamp(path, 3)).status).toBe(200);
      await eventually(receiver.output, (text) => text.includes('Anna 3\n'));
      const from = '2000-01-01T00:00:00Z';
      const types = ['stamp.earned'];
      const { body } = await ownStore.post<{ matched: number }>(
        `${hooks}/${subscription.id}/replay`,
        {
          from,
          types,
        },
      );
      await eventually(
        async () =>
          (
            await ownStore.get<{ status: string }[]>(
              `${hooks}/${subscription.id}/deliveries?status=delivered`,
            )
          ).body,
        (all) => all.length === 1 + body.matched,
      );
      expect(receiver.output().match(/^Anna 3$/gm)).toHaveLength(1);
    },
    SLOW,
  );
});
