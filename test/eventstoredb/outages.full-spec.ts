import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { Pool } from 'pg';
import { Registry } from 'prom-client';
import { DispatchGauges } from '#outbound/dispatch/dispatch-gauges.service.js';
import { BEGINNING, EventStore } from '#platform/event-store/port/event-store.js';
import { formatPosition } from '#platform/event-store/port/position.js';
import type { CustomerCardDetailJson } from '#loyalty/stamping/customer-card.dto.js';
import { ProcessSession } from '#platform/database/process-session.js';
import { Browser } from '../support/browser/browser.js';
import { createTestEnvironment } from '../support/database/database.js';
import { DatabaseProxy } from '../support/database/database-proxy.js';
import { startEventStoreDb, type EventStoreDb } from '../support/emulators/eventstoredb/server.mjs';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import { eventually } from '../support/jest/eventually.js';
import { samples } from '../support/services/metrics.js';
import { startProgram } from '../support/services/program.js';
import { Client, startService, type LocalService } from '../support/services/service.js';

/** An event store that is away takes changes from the service, and nothing else: neither a start nor readiness. */

const SLOW = 300_000;

let server: EventStoreDb;
let service: LocalService;
let store: Client & { email: string };
let customerCard: CustomerCardDetailJson;
let cardPath: string;

beforeAll(async () => {
  server = await startEventStoreDb();
  service = await startService({ EVENT_STORE_URL: server.connectionString });
  store = await service.newStore();
  ({ customerCard, path: cardPath } = await enrol(store));
}, SLOW);
afterAll(async () => {
  await service.stop();
  await server.stop();
}, SLOW);

const READY = { status: 200, body: { status: 'ok' } };
const WITHOUT_EVENT_STORE = {
  status: 200,
  body: { status: 'ok', checks: { database: 'ok', event_store: 'unavailable', migrations: 'ok' } },
};

async function fetchReadiness(baseUrl: string): Promise<{ status: number; body: unknown }> {
  const response = await fetch(`${baseUrl}/health/ready`);
  return { status: response.status, body: await response.json() };
}

const isReachable = async ({ app }: LocalService) =>
  samples(await app.get(Registry, { strict: false }).metrics()).value('inkpad_reachable', {
    part: 'event_store',
  });

/** Starts another api of the service, and lets its processes see that it runs. */
async function startApi(eventStoreUrl: string): Promise<LocalService> {
  const database = { ...service.database, close: async () => undefined };
  const api = await startService({ EVENT_STORE_URL: eventStoreUrl }, database);
  await api.app.get(ProcessSession, { strict: false }).start('api');
  return api;
}

const toClient = ({ baseUrl }: LocalService) => new Client(baseUrl, store.accountId, store.token);
const stamp = (api: LocalService) => toClient(api).post(`${cardPath}/stamp`, { stamps: 1 });

describe.each(['silent', 'not listening'] as const)(
  'while the event store is %s, a start',
  (how) => {
    let line: DatabaseProxy;
    let api: LocalService;

    beforeAll(async () => {
      line = await DatabaseProxy.to(server.connectionString);
      if (how === 'silent') line.mute();
      else await line.cut();
      api = await startApi(line.url);
    }, SLOW);
    afterAll(async () => {
      await api.stop();
      await line.close().catch(() => undefined);
    }, SLOW);

    it('is ready, and names the event store as unavailable in the body and in a metric', async () => {
      expect(await fetchReadiness(api.baseUrl)).toEqual(WITHOUT_EVENT_STORE);
      expect(await isReachable(api)).toBe(0);
    });

    it('shows how old the oldest commit is that is not settled', async () => {
      const { database } = service;
      await database.query(
        `insert into es.positions (subscription, position) values ('webhooks', $1)
         on conflict (subscription) do nothing`,
        [formatPosition(BEGINNING)],
      );
      const id = randomUUID();
      await database.query(
        `insert into es.intents (id, holder, content, created_at, leased_until)
         values ($1, $1, '{}', now() - interval '90 seconds', 'infinity')`,
        [id],
      );
      const registry = new Registry();
      const options = { strict: false };
      const [pool, eventStore] = [api.app.get(Pool, options), api.app.get(EventStore, options)];
      expect(new DispatchGauges(pool, eventStore, registry)).toBeDefined();
      const metrics = samples(await registry.metrics());
      expect(metrics.value('inkpad_intents_oldest_seconds')).toBeGreaterThanOrEqual(90);
      await database.query('delete from es.intents where id = $1', [id]);
    });

    it('serves lists, records, web cards and the counter', async () => {
      const client = toClient(api);
      for (const path of ['cards', 'customers', 'rewards', 'locations']) {
        expect([path, (await client.get(`${store.store}/${path}`)).status]).toEqual([path, 200]);
      }
      expect((await client.get(cardPath)).status).toBe(200);
      const browser = new Browser(api);
      expect((await browser.get(`/passes/${customerCard.uuid}`)).status).toBe(200);
      await browser.signIn(store.email, 'correct horse');
      expect((await browser.get(`/counter/${store.accountId}`)).status).toBe(200);
    });

    it('refuses changes at once, with 503 and the name of what is away', async () => {
      const { status, headers, body } = await stamp(api);
      expect([status, headers.get('retry-after')]).toEqual([503, '1']);
      expect(body).toMatchObject({
        code: 'unavailable',
        error: 'The event store cannot be reached',
        resolution: 'Nothing was written. Send the request again in a moment.',
      });
    });

    it('takes changes as soon as the event store is there', async () => {
      if (how === 'silent') line.unmute();
      else await line.mend();
      await eventually(
        () => stamp(api),
        ({ status }) => status === 200,
      );
      await eventually(
        () => fetchReadiness(api.baseUrl),
        ({ status, body }) => status === 200 && !('checks' in (body as object)),
      );
      expect(await isReachable(api)).toBe(1);
    });
  },
);

it(
  'a dispatcher starts while the event store is silent, and delivers once it is there',
  async () => {
    const line = await DatabaseProxy.to(server.connectionString);
    line.mute();
    const dispatcher = startProgram(
      'dist/apps/dispatcher/main.js',
      createTestEnvironment(service.database.url, { EVENT_STORE_URL: line.url, LOG_LEVEL: 'info' }),
    );
    try {
      const output = await eventually(dispatcher.output, (text) => /health on port/.test(text));
      const port = /health on port (\d+)/.exec(output)?.[1];
      expect(await fetchReadiness(`http://127.0.0.1:${port}`)).toMatchObject({
        status: 200,
        body: { status: 'ok', checks: { event_store: 'unavailable' } },
      });
      line.unmute();
      await eventually(
        () => service.database.query<{ position: string }>('select position from es.positions'),
        ({ rows }) => rows.length > 0,
      );
    } finally {
      await dispatcher.kill('SIGTERM');
      await line.close();
    }
    expect(await dispatcher.exitCode).toBe(0);
  },
  SLOW,
);

it(
  'a script ends once its work is done, while it watches the event store',
  async () => {
    const environment = createTestEnvironment(service.database.url, service.environment);
    const cli = startProgram('dist/apps/cli/cli.js', environment, ['audit:list']);
    expect(await cli.exitCode).toBe(0);
  },
  SLOW,
);

it(
  'a running api goes on to show web cards when the event store goes away, those opened for the first time too',
  async () => {
    const line = await DatabaseProxy.to(server.connectionString);
    const api = await startApi(line.url);
    try {
      const [opened, unopened] = [await enrol(toClient(api)), await enrol(toClient(api))];
      const browser = new Browser(api);
      const show = async ({ customerCard: card }: typeof opened) =>
        (await browser.get(`/passes/${card.uuid}`)).status;
      expect(await show(opened)).toBe(200);
      await line.cut();
      expect([await show(opened), await show(unopened)]).toEqual([200, 200]);
    } finally {
      await api.stop();
      await line.close().catch(() => undefined);
    }
  },
  SLOW,
);

it(
  'the pages of a customer and of the history say in the language of the reader what is wrong and what goes on, and after a form what to check',
  async () => {
    const line = await DatabaseProxy.to(server.connectionString);
    const api = await startApi(line.url);
    try {
      const { customer } = await enrol(toClient(api));
      const browser = new Browser(api);
      await browser.signIn(store.email, 'correct horse');
      const base = `/app/stores/${store.accountId}`;
      const paths = [`${base}/customers/${customer.id}`, `${base}/history`];
      for (const path of paths) expect((await browser.get(path)).status).toBe(200);
      await line.cut();
      for (const [language, title, goesOn, check] of [
        [
          'en',
          'The history cannot be reached right now',
          'everything else can still be viewed',
          'Before you send it again, please check in a moment whether what you have just sent was saved.',
        ],
        [
          'de',
          'Der Verlauf ist gerade nicht erreichbar',
          'alles andere lässt sich weiter',
          'Bitte gleich nachsehen, ob gespeichert ist, was eben gesendet wurde, und es sonst noch einmal senden.',
        ],
        [
          'fr',
          'L’historique est inaccessible pour le moment',
          'peut toujours être consulté',
          'Avant de renvoyer votre saisie, vérifiez dans un instant si elle a été enregistrée.',
        ],
        [
          'es',
          'No se puede acceder al historial',
          'se puede seguir consultando',
          'Antes de volver a enviarlo, compruebe en un momento si se ha guardado.',
        ],
      ] as const) {
        const accept = { 'accept-language': language };
        await browser.get(`${base}/customers/new`);
        const responses = [
          await browser.post(`${base}/customers`, { first_name: 'Ada' }, accept),
          ...(await Promise.all(paths.map((path) => browser.get(path, accept)))),
        ];
        expect(responses.map(({ status }) => status)).toEqual([503, 503, 503]);
        for (const { text } of responses) {
          expect(text).toContain(title);
          expect(text).toContain(goesOn);
        }
        expect(responses.map(({ text }) => text.includes(check))).toEqual([true, false, false]);
      }
      for (const path of [base, `${base}/customers`, `${base}/cards`])
        expect([path, (await browser.get(path)).status]).toEqual([path, 200]);
      expect((await browser.get(base)).text).toContain('The history cannot be reached right now');
    } finally {
      await api.stop();
      await line.close().catch(() => undefined);
    }
  },
  SLOW,
);

describe('a process that started before an event store which it may not use', () => {
  it(
    'refuses changes with the reason in its log, and serves the rest',
    async () => {
      const line = await DatabaseProxy.to(server.connectionString);
      const empty = await startEventStoreDb();
      await line.cut();
      const api = await startApi(line.url);
      try {
        line.switchTo(empty.connectionString);
        await line.mend();
        await eventually(
          () => stamp(api),
          ({ body }) => (body as { error: string }).error === 'The event store cannot be used',
        );
        expect(empty.appended).toBe(0);
        expect((await toClient(api).get(cardPath)).status).toBe(200);
        expect(await fetchReadiness(api.baseUrl)).toEqual(WITHOUT_EVENT_STORE);
      } finally {
        await api.stop();
        await line.close();
        await empty.stop();
      }
    },
    SLOW,
  );
});

describe('readiness during an outage of the event store', () => {
  it(
    'fails where one api alone is cut off, and nowhere once all are',
    async () => {
      const lines = [
        await DatabaseProxy.to(server.connectionString),
        await DatabaseProxy.to(server.connectionString),
      ] as const;
      const apis = [await startApi(lines[0].url), await startApi(lines[1].url)] as const;
      try {
        for (const { baseUrl } of apis) expect(await fetchReadiness(baseUrl)).toEqual(READY);
        await lines[0].cut();
        await eventually(
          () => fetchReadiness(apis[0].baseUrl),
          ({ status }) => status === 503,
        );
        expect(await fetchReadiness(apis[1].baseUrl)).toEqual(READY);
        await lines[1].cut();
        for (const { baseUrl } of apis) {
          await eventually(
            () => fetchReadiness(baseUrl),
            ({ status, body }) => status === 200 && 'checks' in (body as object),
          );
        }
      } finally {
        for (const api of apis) await api.stop();
        for (const line of lines) await line.close().catch(() => undefined);
      }
    },
    SLOW,
  );
});
