import { afterEach, beforeAll, expect, it } from '@jest/globals';
import { Registry } from 'prom-client';
import type { CardJson } from '#loyalty/cards/card.dto.js';
import type { CustomerJson } from '#loyalty/customers/customer.dto.js';
import { CreateImport } from '#loyalty/imports/import.commands.js';
import { ImportQuery, type ImportJson } from '#loyalty/imports/import.dto.js';
import { Browser } from '../support/browser/browser.js';
import { newPoster, SignupForm } from '../support/browser/signup.js';
import { createTestEnvironment } from '../support/database/database.js';
import { expectFailure, useService } from '../support/http/contract.js';
import { eventually } from '../support/jest/eventually.js';
import { newImportDispatch } from '../support/services/import-dispatcher.js';
import { samples } from '../support/services/metrics.js';
import { startProgram } from '../support/services/program.js';
import { startSecondApi } from '../support/services/second-api.js';
import type { ApiResponse } from '../support/services/service.js';

const PUBLIC_URL = 'https://cards.example';
const REASON = 'New database until 14:00 UTC';
const MESSAGE = 'The service is in maintenance, and nothing can be changed';
const IN_MAINTENANCE = [503, 'maintenance'] as const;

const service = useService({ PUBLIC_URL, RATE_LIMIT_PER_MINUTE: '100000' });
const stopping = new AbortController();
const store = service.useStore();

beforeAll(async () => {
  const dispatch = newImportDispatch(service.running).run(stopping.signal);
  service.running.onStop(() => {
    stopping.abort();
    return dispatch;
  });
});
afterEach(() => turnOff());

async function runCli(...args: string[]): Promise<{ maintenance: object | null }> {
  const environment = createTestEnvironment(
    service.running.database.url,
    service.running.environment,
  );
  const program = startProgram('dist/apps/cli/cli.js', environment, args);
  const code = await program.exitCode;
  if (code !== 0) throw new Error(program.output());
  return JSON.parse(/^\{.*\}$/m.exec(program.output())?.[0] ?? 'null') as {
    maintenance: object | null;
  };
}

/** Turns it on as the command does, and waits as long. */
async function turnOn(reason: string | null = REASON): Promise<void> {
  await service.running.database.query(
    'insert into maintenance (reason) values ($1) on conflict (singleton) do update set reason = excluded.reason',
    [reason],
  );
  await eventually(
    () => store.delete(`${store.store}/posters/999999999`),
    ({ status }) => status === 503,
  );
}

async function turnOff(): Promise<void> {
  await service.running.database.query('delete from maintenance');
  await eventually(
    () => store.delete(`${store.store}/posters/999999999`),
    ({ status }) => status === 404,
  );
}

const createCard = (client = store): Promise<ApiResponse<CardJson>> =>
  client.post(`${client.store}/cards`, { card: { name: 'Coffee' } });

it('MAINT-01 In maintenance a request that writes is 503 `maintenance` with `Retry-After`, and nothing is written', async () => {
  const { body: customer } = await store.post<CustomerJson>(`${store.store}/customers`, {
    customer: { first_name: 'Ada', email: 'ada@guest.example' },
  });
  const before = (await service.running.history()).length;
  await turnOn();
  const responses = [
    await createCard(),
    await store.patch(`${store.store}/customers/${customer.id}`, { customer: { first_name: 'B' } }),
    await store.delete(`${store.store}/webhook_subscriptions/1`),
    await store.send('PUT', `${store.store}/cards/1/strip_image`),
    await store.post(`${store.store}/batch`, { operations: [] }),
    // Without a look at the body, however broken it is.
    await store.post(`${store.store}/cards`, '{'),
  ];
  for (const response of responses.filter(({ status }) => status !== 404)) {
    expectFailure(response, ...IN_MAINTENANCE);
    expect(response.headers.get('retry-after')).toBe('30');
    expect(response.body).toMatchObject({ error: `${MESSAGE}: ${REASON}` });
  }
  expect(responses.filter(({ status }) => status === 404)).toEqual([]);
  await turnOn(null);
  await eventually(createCard, ({ text }) => text.includes(`"${MESSAGE}"`));
  expect((await service.running.history()).length).toBe(before);
});

it('MAINT-02 In maintenance requests that read work as ever, and so do the status and health checks', async () => {
  await turnOn();
  for (const path of [`${store.store}/customers`, '/api/v1/accounts', '/api/v1/status']) {
    expect([path, (await store.get(path)).status]).toEqual([path, 200]);
  }
  expect((await store.send('HEAD', `${store.store}/cards`)).status).toBe(200);
  expect((await store.send('OPTIONS', `${store.store}/cards`)).status).toBe(204);
  for (const path of ['/health/live', '/health/ready']) {
    expect(await (await fetch(service.running.baseUrl + path)).json()).toEqual({ status: 'ok' });
  }
});

it('MAINT-03 The token, its limits, its role and the path are checked before the maintenance: 401, 429, 403, 404 or 405', async () => {
  const otherStore = await service.newStore();
  await turnOn();
  expectFailure(await createCard(store.as('wrong')), 401, 'unauthorized');
  expectFailure(await store.post(`${otherStore.store}/cards`, {}), 404, 'not_found');
  expectFailure(await store.post(`${store.store}/nothing`, {}), 404, 'not_found');
  expectFailure(await store.send('PUT', `${store.store}/cards`), 405, 'method_not_allowed');
});

it('MAINT-04 An `Idempotency-Key` can be used again after maintenance: the same request works once it is over', async () => {
  const sendRequest = () =>
    store.send<CardJson>(
      'POST',
      `${store.store}/cards`,
      { card: { name: 'Tea' } },
      { 'idempotency-key': 'tea' },
    );
  await turnOn();
  expectFailure(await sendRequest(), ...IN_MAINTENANCE);
  await turnOff();
  const created = await sendRequest();
  expect(created.status).toBe(201);
  expect((await sendRequest()).body.id).toBe(created.body.id);
});

it('MAINT-05 Maintenance begins and ends for every process within a second, without a restart', async () => {
  const { second } = await startSecondApi(service.running, store);
  const statuses = async () => [
    (await createCard()).status,
    (await second.post(`${store.store}/cards`, { card: { name: 'Coffee' } })).status,
  ];
  const isOn = async () =>
    samples(await service.running.app.get(Registry, { strict: false }).metrics()).value(
      'inkpad_maintenance',
    );
  expect(await statuses()).toEqual([201, 201]);
  expect(await isOn()).toBe(0);
  expect(await runCli('maintenance:status')).toEqual({ maintenance: null });

  const on = { maintenance: { reason: REASON, since: expect.any(String) } };
  expect(await runCli('maintenance:on', '--reason', REASON)).toEqual(on);
  // The command has waited until every process knows.
  expect(await statuses()).toEqual([503, 503]);
  expect(await isOn()).toBe(1);
  expect(await runCli('maintenance:status')).toEqual(on);

  expect(await runCli('maintenance:off')).toEqual({ maintenance: null });
  await eventually(statuses, (all) => all.every((status) => status === 201));
  const { rows } = await service.running.database.query<{ type: string; actor: object }>(
    `select type, subject from audit_log where type like 'maintenance.%' order by id`,
  );
  expect(rows).toEqual([
    { type: 'maintenance.started', subject: { reason: REASON } },
    { type: 'maintenance.ended', subject: { since: expect.any(String) } },
  ]);
  await runCli('maintenance:off');
});

it('MAINT-06 In maintenance a form gets a page that says so in the language of the browser', async () => {
  const form = await SignupForm.open(service.running.baseUrl, PUBLIC_URL, await newPoster(store));
  await turnOn();
  const headers = { accept: 'text/html' };
  for (const [language, title] of [
    ['en', 'Maintenance in progress'],
    ['de', 'Zurzeit laufen Wartungsarbeiten'],
    ['es', 'Estamos haciendo tareas de mantenimiento'],
    ['fr', 'Maintenance en cours'],
  ] as const) {
    const page = await form.send({}, { ...headers, 'accept-language': language });
    expect([page.status, page.headers.get('retry-after')]).toEqual([503, '30']);
    expect(page.text).toContain(`<h1>${title}</h1>`);
  }
  const owner = new Browser(service.running);
  expect((await owner.signIn(store.email, 'correct horse')).status).toBe(303);
  const page = `/app/stores/${store.accountId}`;
  expect((await owner.get(`${page}/settings`)).status).toBe(200);
  const refused = await owner.post(`${page}/settings`, { name: 'Other' });
  expect([refused.status, refused.text]).toEqual([
    503,
    expect.stringContaining('<h1>Maintenance in progress</h1>'),
  ]);
  await owner.get(`${page}/settings`);
  expect((await owner.post('/app/sign-out')).status).toBe(303);
});

it('MAINT-07 An import waits, and goes on once the maintenance is over', async () => {
  await turnOn();
  const lines = [
    'first_name,email',
    ...Array.from({ length: 300 }, (_, i) => `Guest,row-${i}@guest.example`),
  ];
  const options = { card_id: null, dry_run: false, mapping: null, date_order: null };
  // As if it had been accepted just before.
  const { id } = await service.running.execute(
    new CreateImport(
      {
        accountId: store.accountId,
        actor: { type: 'system', id: 0 },
        channel: 'api',
        requestId: 'import',
      },
      { bytes: Buffer.from(lines.join('\n')), format: 'csv', encoding: null },
      Object.assign(new ImportQuery(), options),
    ),
  );
  const isPostponed = async () =>
    (
      await service.running.database.query<{ postponed: boolean }>(
        `select due_at > now() + interval '2 seconds' and attempts = 0 as postponed from imports where id = $1`,
        [id],
      )
    ).rows[0]?.postponed;
  await eventually(isPostponed, (postponed) => postponed === true);
  const read = async () => (await store.get<ImportJson>(`${store.store}/imports/${id}`)).body;
  expect(await read()).toMatchObject({ state: 'checking', created: 0 });
  await turnOff();
  expect(await eventually(read, ({ state }) => state === 'done')).toMatchObject({ created: 300 });
});
