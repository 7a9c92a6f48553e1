import { spawnSync } from 'node:child_process';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import ts from 'typescript';
import { toPublicEventId } from '#platform/kernel/public-id.js';
import { EventStore } from '#platform/event-store/port/event-store.js';
import {
  createClient,
  InkpadError,
  type ClientOptions,
} from '../../clients/typescript/src/client.js';
import { plainPng } from '../support/fixtures/pictures.js';
import { createResponseChecker } from '../support/http/openapi.js';
import { startService, type Client, type LocalService } from '../support/services/service.js';

type Operation = {
  operationId: string;
  'x-codeSamples': { label: string; source: string }[];
};
type Document = { paths: Record<string, Record<string, Operation>> };
type Sample = Record<'id' | 'method' | 'path' | 'curl' | 'typescript' | 'python', string>;

/** The operation that every other one needs. */
const FIRST = 'createCard';
/**
 * Operations in the order of a shop's first day, because each example names the first record of its kind. Then follow
 * the other operations that create a record, and last those that read or change one.
 */
const STORY = [
  'getStatus',
  'listAccounts',
  'createReward',
  'createCustomer',
  'createWebhookSubscription',
  'createLocation',
  'createPoster',
  'stampCustomerCard',
  'redeemReward',
];
/** Responses of operations that need a dispatcher, which does not run here. */
const EXPECTED_FAILURES = new Map([
  ['getWebhookDelivery', { status: 404, message: 'Delivery not found' }],
  ['redeliverWebhook', { status: 404, message: 'Delivery not found' }],
  [
    'startImport',
    { status: 422, message: 'The import is still being checked, so it cannot be started' },
  ],
  [
    'discardImport',
    { status: 422, message: 'The import is still being checked, so it can no longer be discarded' },
  ],
  [
    'undoImport',
    { status: 422, message: 'The import is still being checked, so there is nothing to undo' },
  ],
  ['getEventProof', { status: 503, message: 'The history is behind' }],
]);
const CREATE_OPERATIONS = /^create/;
/** The event id of the examples, replaced by that of the customer card's last event. */
const EVENT_ID = 'evt_01KJM3Z0Q8F7W2N4B6D8C0E1G3';
/** The code of the examples, replaced by that of the customer card. */
const CODE = 'K7QX2M9P';
/** Run in a store of their own: a redeemed reward cannot be deleted, and an erased customer cannot be changed. */
const DELETE_OPERATIONS = /^(delete|erase)/;

let service: LocalService;
let document: Document;
let samples: Sample[];

beforeAll(async () => {
  service = await startService();
  const response = await fetch(`${service.baseUrl}/openapi.json`);
  document = (await response.json()) as Document;
  samples = toSamples(document);
});

afterAll(() => service.stop());

describe('the code examples of openapi.json', () => {
  it('cover every operation once', () => {
    const operations = Object.values(document.paths).flatMap((path) => Object.values(path));
    expect(samples.map(({ id }) => id).sort()).toEqual(operations.map((o) => o.operationId).sort());
    expect(STORY.filter((id) => !samples.some((sample) => sample.id === id))).toEqual([]);
  });

  it('run unchanged in curl and get a response as documented', async () => {
    const checkResponse = createResponseChecker(document);
    const playedCount = await playEach(async ({ id, curl, method, path }, store) => {
      const { url, init } = parseRequest(curl, store);
      expect([id, init.method, url.pathname]).toEqual([id, method, path]);
      const response = await fetch(url, init);
      const text = await response.text();
      const { status, headers } = response;
      const failure = EXPECTED_FAILURES.get(id);
      const isExpected = failure ? status === failure.status : status < 300;
      expect([id, isExpected, text]).toEqual([id, true, text]);
      const isFile = headers.get('content-disposition') !== null && id === 'exportRecords';
      const body: unknown = isFile ? text : text === '' ? undefined : JSON.parse(text);
      expect(checkResponse({ method, path, status, headers, body })).toEqual([]);
    });
    expect(playedCount).toBe(samples.length);
  });

  it('run unchanged in TypeScript', async () => {
    const playedCount = await playEach(async ({ id, typescript }, store) => {
      const [first, ...lines] = typescript.split('\n');
      expect(first).toBe("import { createClient } from '@inkpad/client';");
      const text = `async function example() { ${lines.join('\n')} }`;
      const options = { compilerOptions: { target: ts.ScriptTarget.ES2022 } };
      const { outputText } = ts.transpileModule(text, options);
      const run = new Function('createClient', 'process', `${outputText}\nreturn example();`) as (
        create: typeof createClient,
        process: object,
      ) => Promise<void>;
      const env = { INKPAD_URL: store.baseUrl, INKPAD_TOKEN: store.token };
      // A retry would not change the expected failures.
      const create = ((options: ClientOptions) =>
        createClient({ ...options, retries: 0 })) as typeof createClient;
      const outcome = await run(create, { env }).then(
        () => 'done',
        (error: unknown) => String(error),
      );
      const failure = EXPECTED_FAILURES.get(id);
      const expected = failure ? `InkpadError: ${failure.message}` : 'done';
      expect([id, outcome]).toEqual([id, expected]);
    });
    expect(playedCount).toBe(samples.length);
  });
});

describe('the TypeScript client', () => {
  it('iterates over all pages of a list and throws an InkpadError for a 422', async () => {
    const { baseUrl, token, accountId } = await service.newStore();
    const inkpad = createClient({ baseUrl, token: token ?? '', idempotent: true });
    const path = { account_id: accountId };
    for (const name of ['One', 'Two', 'Three']) {
      await inkpad.createCard({ path, body: { card: { name } } });
    }
    const names: string[] = [];
    for await (const card of inkpad.iterate('listCards', { path, query: { limit: 2 } })) {
      names.push(card.name);
    }
    expect(names).toEqual(['One', 'Two', 'Three']);
    const rejection = await inkpad
      .createCard({ path, body: { card: { name: ' ' } } })
      .catch((error: unknown) => error);
    expect(rejection).toBeInstanceOf(InkpadError);
    expect(rejection).toMatchObject({
      status: 422,
      code: 'validation_failed',
      errors: { name: ['must not be blank'] },
      requestId: expect.stringMatching(/./),
      retryAfter: null,
    });
  });
});

/** Runs each example once, on services whose first records have the ids that the examples name. */
async function playEach(play: (sample: Sample, store: Client) => Promise<void>): Promise<number> {
  const orderedSamples = STORY.flatMap((name) => samples.filter(({ id }) => id === name));
  const deletes = samples.filter(({ id }) => DELETE_OPERATIONS.test(id));
  const others = samples
    .filter((sample) => ![...orderedSamples, ...deletes].includes(sample) && sample.id !== FIRST)
    .sort(
      (one, other) =>
        Number(CREATE_OPERATIONS.test(other.id)) - Number(CREATE_OPERATIONS.test(one.id)),
    );
  await playInFirstStore([...orderedSamples, ...others], play);
  const creations = [...orderedSamples, ...others].filter(({ id }) => CREATE_OPERATIONS.test(id));
  await playInFirstStore([...creations, ...deletes], play);
  return 1 + orderedSamples.length + others.length + deletes.length;
}

async function playInFirstStore(
  sequence: Sample[],
  play: (sample: Sample, store: Client) => Promise<void>,
): Promise<void> {
  const fresh = await startService();
  try {
    const store = await fresh.newStore();
    expect(store.accountId).toBe(1);
    for (const sample of samples.filter(({ id }) => id === FIRST)) await play(sample, store);
    // The second card, which the example of an enrolment names.
    await store.post(`${store.store}/cards`, { card: { name: 'Tea card' } });
    for (const sample of sequence) {
      const hasEventId = sample.path.includes(EVENT_ID);
      // Announcements and rules share a sequence. Either example names the first of its kind.
      if (/^create(Announcement|MessageRule)$/.test(sample.id)) {
        await fresh.database.query(`select setval('campaigns_id', 1, false)`);
      }
      // The balance is spent by then.
      if (sample.id === 'redeemByCode') await store.post(`${CARD}/adjust`, ENOUGH);
      await play(
        hasEventId ? await withLastEvent(sample, fresh) : await withCode(sample, store),
        store,
      );
      // The second customer, whom the example of a merge names.
      if (sample.id === 'createCustomer') {
        const customer = { first_name: 'Ben', email: 'ben@example.com' };
        await store.post(`${store.store}/customers`, { customer });
      }
    }
  } finally {
    await fresh.stop();
  }
}

const CARD = '/api/v1/accounts/1/customers/1/customer_cards/1';
const ENOUGH = { stamps: 20, reason: 'For the next example' };

/** Puts the customer card's code, which is random, into an example. */
async function withCode(sample: Sample, store: Client): Promise<Sample> {
  if (!sample.path.includes(CODE)) return sample;
  const { body } = await store.get<{ code: string }>(CARD);
  return replaceInSample(sample, CODE, body.code);
}

function replaceInSample(sample: Sample, name: string, value: string): Sample {
  const entries = Object.entries(sample).map(([key, text]) => [key, text.replaceAll(name, value)]);
  return Object.fromEntries(entries) as Sample;
}

/** Puts the last event's id, which is random, into an example. */
async function withLastEvent(sample: Sample, { app }: LocalService): Promise<Sample> {
  const newestFirst = { direction: 'backwards' } as const;
  let id = '';
  for await (const event of app.get(EventStore).readStream('customer_card-1', newestFirst)) {
    id = toPublicEventId(event.id);
    break;
  }
  return replaceInSample(sample, EVENT_ID, id);
}

function toSamples({ paths }: Document): Sample[] {
  return Object.entries(paths).flatMap(([template, operations]) =>
    Object.entries(operations).map(([method, { operationId, 'x-codeSamples': codeSamples }]) => ({
      id: operationId,
      method: method.toUpperCase(),
      path: template
        .replace('{event_id}', EVENT_ID)
        .replace('{code}', CODE)
        .replace('{file}', 'customers.csv')
        .replaceAll(/\{\w+\}/g, '1'),
      curl: findSource(codeSamples, 'curl'),
      typescript: findSource(codeSamples, 'TypeScript'),
      python: findSource(codeSamples, 'Python'),
    })),
  );
}

function findSource(codeSamples: Operation['x-codeSamples'], label: string): string {
  return codeSamples.find((one) => one.label === label)?.source ?? '';
}

/** Parses the request that curl would send when a shell calls it. Needs no curl, which not every machine has. */
function parseRequest(sample: string, { baseUrl, token }: Client) {
  const { stdout } = spawnSync('sh', ['-c', `curl() { printf '%s\\0' "$@"; }\n${sample}`], {
    encoding: 'utf8',
    env: { INKPAD_URL: baseUrl, INKPAD_TOKEN: token ?? '' },
  });
  const rest = stdout.split('\0').slice(0, -1);
  const init = {
    method: 'GET',
    headers: new Headers(),
    body: undefined as string | Uint8Array<ArrayBuffer> | undefined,
  };
  let address = '';
  for (let word = rest.shift(); word !== undefined; word = rest.shift()) {
    if (word === '-X') init.method = String(rest.shift());
    else if (word === '-d') init.body = String(rest.shift());
    else if (word === '--data-binary') init.body = readFileArgument(String(rest.shift()));
    else if (word === '-H') {
      const [name = '', value = ''] = String(rest.shift()).split(/: (.*)/);
      init.headers.set(name, value);
    } else address = word;
  }
  const { body, ...others } = init;
  return { url: new URL(address), init: { ...others, ...(body !== undefined && { body }) } };
}

function readFileArgument(argument: string): Uint8Array<ArrayBuffer> {
  if (argument === '@customers.csv')
    return new TextEncoder().encode('Name,E-mail\nC,c@example.com\n');
  if (argument !== '@strip.png') throw new Error(`no example may send ${argument}`);
  return plainPng(20, 10);
}
