import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { eventually } from '../support/jest/eventually.js';
import { GuideReader, type Desk } from '../support/guides/guide-reader.js';
import {
  COMPILED,
  findRequests,
  guideNames,
  LANGUAGES,
  parseSteps,
} from '../support/guides/guide-parser.js';
import { findFreePort, type Program } from '../support/services/program.js';
import { isSigned, Receiver, type Received } from '../support/emulators/webhook-receiver.js';
import { RecordingProxy } from '../support/http/recording-proxy.js';
import { startService, type Client, type Service } from '../support/services/service.js';
import { startDispatcher } from '../support/services/webhook-dispatcher.js';

/** Follows the guides in docs/guides: runs each sample in turn, in curl, TypeScript, Python, Java and Go. */

const SLOW = 300_000;
const AUTOMATION = 'automation';
/** Their samples are settings of other programs; test/mcp/assistants tries them. */
const ASSISTANTS = 'assistants';
/** Only in curl, and with another token; test/admin-api/provisioning-guide tries it. */
const PROVISIONING = 'provision-stores';
/** Has no samples. */
const SETTINGS = 'settings';
const TILL = 'connect-a-till';
const FIRST = 'first-stamp';
const WEBHOOKS = 'webhooks';
const GUIDES = guideNames().filter(
  (name) => ![AUTOMATION, ASSISTANTS, PROVISIONING, SETTINGS].includes(name),
);
const TARGET = 'https://hooks.example/flow/1';

let folder: string;
let python: string;

function run(command: string[], cwd = folder): string {
  const [program = '', ...rest] = command;
  const { status, stdout, stderr } = spawnSync(program, rest, { cwd, encoding: 'utf8' });
  if (status !== 0)
    throw new Error(`${command.join(' ')} ended with ${status}:\n${stdout}${stderr}`);
  return stdout;
}

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'inkpad-guides-'));
  const modules = join(folder, 'node_modules');
  mkdirSync(join(modules, '@inkpad'), { recursive: true });
  for (const name of ['standardwebhooks', '@types', 'undici-types', 'typescript']) {
    symlinkSync(resolve('node_modules', name), join(modules, name));
  }
  cpSync('docs/receivers', folder, { recursive: true });
  const client = join(modules, '@inkpad/client');
  cpSync('clients/typescript', client, { recursive: true });
  const tsc = resolve('node_modules/typescript/bin/tsc');
  run([process.execPath, tsc], client);
  cpSync('clients/python', join(folder, 'client'), { recursive: true });
  const [systemPython = 'python3'] = ['/usr/bin/python3'].filter(
    (path) => spawnSync(path, ['-V']).status === 0,
  );
  run([systemPython, '-m', 'venv', 'venv']);
  python = join(folder, 'venv/bin/python');
  run([python, '-m', 'pip', 'install', '-q', '--disable-pip-version-check', './client', 'mypy']);
}, SLOW);

afterAll(() => rmSync(folder, { recursive: true }), SLOW);

type Stage = { desk: Desk; service: Service; store: Client; stop: () => Promise<void> };

/** Starts a service whose first records have the ids that the guides name. */
async function startStage(instead: Record<string, string>): Promise<Stage> {
  const settings = {
    WEBHOOK_ALLOW_INSECURE_TARGETS: 'true',
    PUBLIC_URL: 'https://cards.example',
    // The default of the setting.
    RATE_LIMIT_PER_MINUTE: '300',
  };
  const service = await startService(settings);
  const dispatcher: Program = await startDispatcher(service);
  const store = await service.newStore();
  const recorder = await RecordingProxy.start(service.baseUrl);
  const desk: Desk = { recorder, token: String(store.token), folder, python, instead };
  return {
    desk,
    service,
    store,
    stop: async () => {
      await recorder.stop();
      await dispatcher.kill('SIGTERM');
      await service.stop();
    },
  };
}

/** Sets the code of the card that the guides scan, and makes now of the time of their sales. */
async function setTable({ desk, store }: Stage): Promise<void> {
  const { body } = await store.get<{ code: string }[]>(`${store.store}/customers/1/customer_cards`);
  const now = new Date().toISOString();
  const [code = 'K7QX2M9P'] = Array.isArray(body)
    ? body.map((customerCard) => customerCard.code)
    : [];
  Object.assign(desk.instead, {
    K7QX2M9P: code,
    '2026-05-04T09:41:00Z': now,
    '2026-05-04': now.slice(0, 10),
  });
}

describe.each(LANGUAGES)('the guides in %s', (language) => {
  let stage: Stage;
  let reader: GuideReader;

  beforeAll(async () => {
    stage = await startStage({ '8787': String(await findFreePort()) });
    reader = new GuideReader(stage.desk, language);
  }, SLOW);

  afterAll(async () => {
    await reader.stop();
    await stage.stop();
  }, SLOW);

  it.each(GUIDES)(
    'work as shown: %s',
    async (guide) => {
      await setTable(stage);
      expect(await reader.read(guide)).not.toEqual([]);
    },
    SLOW,
  );
});

describe.each(COMPILED)('the main guides in %s', (language) => {
  describe('each compiled as one program', () => {
    let stage: Stage;
    let reader: GuideReader;

    beforeAll(async () => {
      stage = await startStage({ 'items=100': 'items=1', '8787': String(await findFreePort()) });
      reader = new GuideReader(stage.desk, language);
    }, SLOW);

    afterAll(async () => {
      await reader.stop();
      await stage.stop();
    }, SLOW);

    it(
      'work as shown, and that for tills reads the second page',
      async () => {
        await reader.read(FIRST);
        await setTable(stage);
        const paths = (await reader.read(TILL)).map(({ path }) => path);
        expect(paths).toContainEqual(expect.stringMatching(/\/customers\?.*cursor=[^&]/));
        await reader.read(WEBHOOKS);
      },
      SLOW,
    );
  });
});

describe.each([
  [TILL, 10],
  [FIRST, 6],
  [WEBHOOKS, 4],
])('the samples of %s', (guide, minCount) => {
  const steps = parseSteps(guide).filter(
    (step) => step[0]?.language === 'sh' && step.some(({ language }) => language === 'csharp'),
  );

  it.each(['csharp', 'java', 'go'])('send in %s what they send in curl', (language) => {
    const select = (choice: string) =>
      steps.map((step) => step.filter((fence) => fence.language === choice).flatMap(findRequests));
    expect(select(language)).toEqual(select('sh'));
    expect(steps.length).toBeGreaterThanOrEqual(minCount);
  });
});

describe('the programs of the guides', () => {
  const desk = () => ({ recorder: undefined as never, token: '', folder, python, instead: {} });

  it(
    'type-check against the clients',
    () => {
      const code = (language: 'ts' | 'python') =>
        GUIDES.map(
          (guide) => [guide, new GuideReader(desk(), language).findProgram(guide)] as const,
        );
      const scripts = code('ts').map(([guide, text]) => {
        writeFileSync(join(folder, `${guide}.ts`), text);
        return `${guide}.ts`;
      });
      const compilerOptions = {
        strict: true,
        noEmit: true,
        target: 'es2022',
        module: 'nodenext',
        moduleDetection: 'force',
        types: ['node'],
      };
      writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
      const config = { compilerOptions, files: scripts };
      writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config));
      expect(run([process.execPath, resolve('node_modules/typescript/bin/tsc')])).toBe('');
      for (const [guide, text] of code('python')) writeFileSync(join(folder, `${guide}.py`), text);
      const files = GUIDES.map((guide) => `${guide}.py`);
      const options = ['--strict', '--scripts-are-modules'];
      expect(run([python, '-m', 'mypy', ...options, ...files])).toContain('Success');
    },
    SLOW,
  );
});

type Bundle = {
  authData: { url: string; store: number; token: string };
  targetUrl?: string;
  subscribeData?: unknown;
};
type RequestOptions = {
  method?: string;
  url: string;
  params?: object;
  body?: object;
  headers?: object;
  skipThrowForStatus?: boolean;
};
type Zapier = { request: (options: RequestOptions) => Promise<{ status: number; data: unknown }> };
type Perform = (z: Zapier, bundle: unknown) => Promise<unknown>;
type Trigger = {
  addToken: (options: RequestOptions, z: unknown, bundle: Bundle) => RequestOptions;
  trigger: {
    operation: Record<
      'performSubscribe' | 'performUnsubscribe' | 'perform' | 'performList',
      Perform
    >;
  };
};

describe('the recipe for automation platforms', () => {
  let stage: Stage;
  let receiver: Receiver;

  beforeAll(async () => {
    receiver = await Receiver.start();
    stage = await startStage({ [TARGET]: receiver.url });
    await new GuideReader(stage.desk, 'sh').read('first-stamp');
  }, SLOW);

  afterAll(async () => {
    await stage.stop();
    await receiver.stop();
  }, SLOW);

  const listSubscriptions = async () =>
    (await stage.store.get<unknown[]>(`${stage.store.store}/webhook_subscriptions`)).body;

  /** Stamps the card and waits for the webhook. */
  async function stampAndReceive(): Promise<Received> {
    const before = receiver.events.length;
    const path = `${stage.store.store}/customers/1/customer_cards/1/stamp`;
    expect((await stage.store.post(path, { stamps: 2 })).status).toBe(200);
    const events = await eventually(
      () => receiver.events,
      (all) => all.length > before,
    );
    return events[before] as Received;
  }

  it(
    'subscribes, receives, shows samples and unsubscribes in curl',
    async () => {
      const arrived = async () => {
        const [first] = await eventually(
          () => receiver.events,
          (events) => events.length > 0,
        );
        return first?.body;
      };
      const exchanges = await new GuideReader({ ...stage.desk, arrived }, 'sh').read(AUTOMATION);
      const [subscribeExchange] = exchanges;
      const { secret } = Object(subscribeExchange?.body) as { secret: string };
      const [first] = receiver.events as [Received];
      expect(isSigned(first, secret)).toBe(true);
      expect(first.headers).toMatchObject({
        'service-event': 'stamp.earned',
        'webhook-id': expect.stringMatching(/^evt_/),
      });
      // A sample has the fields of a webhook.
      const sample = exchanges.find(({ path }) => path.includes('/events'))?.body as {
        data: object;
      }[];
      expect(Object.keys(sample[1]?.data ?? {})).toEqual(Object.keys(first.body));
      expect(exchanges.at(-1)).toMatchObject({ method: 'DELETE', status: 204, body: '' });
      expect(await listSubscriptions()).toEqual([]);
    },
    SLOW,
  );

  it(
    'subscribes, receives, shows samples and unsubscribes in Zapier',
    async () => {
      const { addToken, trigger } = createRequire(join(folder, 'zapier.cjs'))(
        './stamp_earned.cjs',
      ) as Trigger;
      const { baseUrl: url, accountId: store, token } = stage.store;
      const bundle: Bundle = { authData: { url, store, token: String(token) } };
      const z = createZapier((options) => addToken(options, undefined, bundle));
      const { performSubscribe, performUnsubscribe, perform, performList } = trigger.operation;
      const subscribeData = await performSubscribe(z, { ...bundle, targetUrl: receiver.url });
      const { body, headers } = await stampAndReceive();
      const result = await perform(z, {
        ...bundle,
        subscribeData,
        cleanedRequest: body,
        rawRequest: { headers: toZapierHeaders(headers) },
      });
      const samples = await performList(z, bundle);
      const last = [{ stamps: 2, customer: { first_name: 'Anna' }, id: headers['webhook-id'] }];
      expect(result).toMatchObject(last);
      expect(samples).toContainEqual(expect.objectContaining((result as [object])[0]));
      for (let times = 0; times < 2; times++) {
        expect(await performUnsubscribe(z, { ...bundle, subscribeData })).toEqual({});
        expect(await listSubscriptions()).toEqual([]);
      }
    },
    SLOW,
  );

  it(
    'attaches, receives and detaches in Make',
    async () => {
      const { baseUrl: url, accountId: store, token } = stage.store;
      const input = { connection: { url, store, token }, parameters: { event: 'stamp.earned' } };
      const webhook = { url: receiver.url };
      const attachment = await runMakeModule('attach', { ...input, webhook });
      const { headers } = await stampAndReceive();
      expect(headers['service-event']).toBe('stamp.earned');
      await runMakeModule('detach', { ...input, webhook: { ...webhook, ...attachment } });
      expect(await listSubscriptions()).toEqual([]);
    },
    SLOW,
  );
});

/** Sends requests as Zapier does: throws unless the status is 2xx or the request skips that, and parses JSON. */
function createZapier(before: (options: RequestOptions) => RequestOptions): Zapier {
  return {
    request: async (options) => {
      const { method, url, params, body, headers, skipThrowForStatus } = before(options);
      const search = params
        ? `?${new URLSearchParams({ ...params } as Record<string, string>)}`
        : '';
      const httpResponse = await fetch(url + search, {
        method: method ?? 'GET',
        headers: { 'content-type': 'application/json', ...headers },
        ...(body && { body: JSON.stringify(body) }),
      });
      if (!httpResponse.ok && !skipThrowForStatus)
        throw new Error(`${url} responded ${httpResponse.status}`);
      const text = await httpResponse.text();
      return { status: httpResponse.status, data: text === '' ? undefined : JSON.parse(text) };
    },
  };
}

/** Renames headers as Zapier does: `webhook-id` becomes `Http-Webhook-Id`. */
function toZapierHeaders(headers: Received['headers']): Record<string, unknown> {
  const capitalize = (name: string) =>
    name.replaceAll(/(?<=^|-)\w/g, (letter) => letter.toUpperCase());
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [`Http-${capitalize(name)}`, value]),
  );
}

type Module = {
  url: string;
  method: string;
  headers: Record<string, string>;
  body?: object;
  response?: { data: Record<string, string> };
};

/** Runs a module as Make does: puts values into {{…}}, and returns the fields that `response.data` names. */
async function runMakeModule(name: string, values: object): Promise<Record<string, unknown>> {
  const fence = parseSteps(AUTOMATION)
    .flat()
    .find((candidate) => candidate.name === name);
  const fillTemplate = (value: unknown, from: object): unknown =>
    JSON.parse(
      JSON.stringify(value).replaceAll(/\{\{([\w.]+)\}\}/g, (_, place: string) =>
        String(place.split('.').reduce<unknown>((at, key) => Object(at)[key], from)),
      ),
    );
  const { response, ...request } = JSON.parse(fence?.text ?? '{}') as Module;
  const { url, method, headers, body } = fillTemplate(request, values) as Module;
  const httpResponse = await fetch(url, {
    method,
    headers: { ...headers, ...(body && { 'content-type': 'application/json' }) },
    ...(body && { body: JSON.stringify(body) }),
  });
  const text = await httpResponse.text();
  if (!httpResponse.ok)
    throw new Error(`${method} ${url} responded ${httpResponse.status}: ${text}`);
  return text === ''
    ? {}
    : (fillTemplate(response?.data ?? {}, { body: JSON.parse(text) }) as object as Record<
        string,
        unknown
      >);
}
