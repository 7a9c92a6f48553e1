import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { eventually } from '../support/jest/eventually.js';
import { findFreePort, startCommand, type Program } from '../support/services/program.js';
import { startService, type Client, type Service } from '../support/services/service.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import { startDispatcher } from '../support/services/webhook-dispatcher.js';

/** Uses the Python client as a new user does: installs it into a new environment, and runs the examples of its README. */

const SLOW = 300_000;
const CLIENT = resolve('clients/python');
const README = readFileSync(join(CLIENT, 'README.md'), 'utf8');
const [EXAMPLE = '', ASYNCIO = '', RECEIVER = ''] = [
  ...README.matchAll(/^```python\n([^]*?)^```/gm),
].map(([, code = '']) => code);

type Document = {
  paths: Record<
    string,
    Record<string, { operationId: string; 'x-codeSamples': { label: string; source: string }[] }>
  >;
};

let folder: string;
let python: string;
const programs: Program[] = [];

function run(command: string[]): string {
  const [program = '', ...rest] = command;
  const { status, stdout, stderr } = spawnSync(program, rest, {
    cwd: folder,
    encoding: 'utf8',
  });
  if (status !== 0)
    throw new Error(`${command.join(' ')} ended with ${status}:
${stdout}${stderr}`);
  return stdout + stderr;
}

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'inkpad-python-'));
  // A copy, because the build writes files next to its sources.
  for (const part of ['LICENSE', 'README.md', 'pyproject.toml', 'src', 'tests']) {
    cpSync(join(CLIENT, part), join(folder, 'client', part), { recursive: true });
  }
  writeFileSync(join(folder, 'example.py'), EXAMPLE);
  writeFileSync(join(folder, 'asyncio_example.py'), ASYNCIO);
  writeFileSync(join(folder, 'receiver.py'), RECEIVER);
  // Debian's Python where there is one, since most servers run it.
  const [systemPython = 'python3'] = ['/usr/bin/python3'].filter(
    (path) => spawnSync(path, ['-V']).status === 0,
  );
  run([systemPython, '-m', 'venv', 'venv']);
  python = join(folder, 'venv/bin/python');
  run([
    python,
    '-m',
    'pip',
    'install',
    '-q',
    '--disable-pip-version-check',
    './client[ed25519]',
    'mypy',
  ]);
}, SLOW);

afterEach(async () => {
  await Promise.all(programs.splice(0).map((program) => program.kill('SIGKILL')));
});

afterAll(() => rmSync(folder, { recursive: true }), SLOW);

it(
  'the installed Python client passes its own tests',
  () => {
    const output = run([python, '-m', 'unittest', 'discover', 'client/tests']);
    expect(output).toMatch(/Ran [1-9]\d* tests[^]*OK/);
  },
  SLOW,
);

it(
  'the Python client and the examples of its README pass mypy --strict, which finds a missing argument',
  () => {
    const options = ['--strict', '--config-file', 'client/pyproject.toml'];
    const code = ['client/src', 'client/tests'];
    expect(run([python, '-m', 'mypy', ...options, ...code])).toContain('Success');
    const wrong =
      'from inkpad import Inkpad\nInkpad(base_url="", token="").get_card(account_id=1)\n';
    writeFileSync(join(folder, 'wrong.py'), wrong);
    for (const file of ['example.py', 'asyncio_example.py', 'receiver.py']) {
      expect(run([python, '-m', 'mypy', '--strict', file])).toContain('Success');
    }
    const { stdout } = spawnSync(python, ['-m', 'mypy', '--strict', 'wrong.py'], {
      cwd: folder,
      encoding: 'utf8',
    });
    expect(stdout).toContain('Missing named argument "id" for "get_card"');
  },
  SLOW,
);

it(
  'the Python samples of openapi.json pass mypy --strict',
  () => {
    const { paths } = JSON.parse(readFileSync('openapi.json', 'utf8')) as Document;
    const operations = Object.values(paths).flatMap((methods) => Object.values(methods));
    const files = operations.map(({ operationId, 'x-codeSamples': samples }) => {
      const { source = '' } = samples.find(({ label }) => label === 'Python') ?? {};
      expect(source).toContain('from inkpad import Inkpad');
      writeFileSync(join(folder, `${operationId}.py`), source);
      return `${operationId}.py`;
    });
    const output = run([python, '-m', 'mypy', '--strict', '--scripts-are-modules', ...files]);
    expect(output).toContain(`${files.length} source files`);
  },
  SLOW,
);

describe('the examples in the README of the Python client', () => {
  let service: Service;
  let dispatcher: Program;
  let store: Client;

  beforeAll(async () => {
    service = await startService({ WEBHOOK_ALLOW_INSECURE_TARGETS: 'true' });
    dispatcher = await startDispatcher(service);
    store = await service.newStore();
  }, SLOW);

  afterAll(async () => {
    await dispatcher.kill('SIGTERM');
    await service.stop();
  }, SLOW);

  it(
    'stamp a card, list rewards and print an error',
    async () => {
      const { customer, customerCard } = await enrol(store, { rewards: [2] });
      const code = EXAMPLE.replaceAll('account_id=1', `account_id=${store.accountId}`)
        .replace('customer_id=31', `customer_id=${customer.id}`)
        .replace('id=12,', `id=${customerCard.id},`);
      const env = { INKPAD_URL: service.baseUrl, INKPAD_TOKEN: `${store.token}` };
      const outputs: string[] = [];
      for (const text of [code, code.replace(`id=${customerCard.id},`, 'id=999999,')]) {
        writeFileSync(join(folder, 'example.py'), text);
        const program = startCommand([python, 'example.py'], env, { cwd: folder });
        expect([await program.exitCode, program.output()]).toEqual([0, expect.any(String)]);
        outputs.push(program.output());
      }
      expect(outputs[0]).toMatch(/^2 [^]*'name': 'Reward at 2'[^]*\nReward at 2\n$/);
      expect(outputs[1]).toMatch(/^404 not_found \{\} [^]*\nReward at 2\n$/);
    },
    SLOW,
  );

  it(
    'list the customers of a store with asyncio',
    async () => {
      const ownStore = await service.newStore();
      await enrol(ownStore, { rewards: [2, 4] });
      const env = { INKPAD_URL: service.baseUrl, INKPAD_TOKEN: `${ownStore.token}` };
      const code = ASYNCIO.replace('account_id=1', `account_id=${ownStore.accountId}`);
      writeFileSync(join(folder, 'asyncio_example.py'), code);
      const program = startCommand([python, 'asyncio_example.py'], env, { cwd: folder });
      expect([await program.exitCode, program.output()]).toEqual([0, '1 2\nAnna\n']);
    },
    SLOW,
  );

  it(
    'receive each webhook once',
    async () => {
      const port = await findFreePort();
      const url = `http://127.0.0.1:${port}/`;
      const hooks = `${store.store}/webhook_subscriptions`;
      const { body: subscription } = await store.post<{ id: number; secret: string }>(hooks, {
        events: ['stamp.earned'],
        target_url: url,
      });
      const environment = { WEBHOOK_SECRET: subscription.secret, PORT: String(port) };
      const receiver = startCommand([python, 'receiver.py'], environment, { cwd: folder });
      programs.push(receiver);
      await eventually(
        () =>
          fetch(url, { method: 'POST', body: '{}' }).then(
            ({ status }) => status,
            () => 0,
          ),
        (status) => status === 401,
      );
      const { path } = await enrol(store);
      expect((await store.stamp(path, 3)).status).toBe(200);
      await eventually(receiver.output, (text) => text.includes('Anna 3\n'));
      const from = '2000-01-01T00:00:00Z';
      const { body } = await store.post<{ matched: number }>(`${hooks}/${subscription.id}/replay`, {
        from,
      });
      await eventually(
        async () =>
          (await store.get<object[]>(`${hooks}/${subscription.id}/deliveries?status=delivered`))
            .body,
        (all) => all.length === 1 + body.matched,
      );
      expect(receiver.output().match(/^Anna 3$/gm)).toHaveLength(1);
    },
    SLOW,
  );
});
