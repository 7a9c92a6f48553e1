import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { CreateUser } from '#identity/identity.commands.js';
import { AddMember } from '#identity/member.commands.js';
import { CreateToken } from '#identity/token.commands.js';
import { Browser } from '../support/browser/browser.js';
import { samples, type Labels } from '../support/services/metrics.js';
import {
  createTestDatabase,
  createTestEnvironment,
  type TestDatabase,
} from '../support/database/database.js';
import { eventually } from '../support/jest/eventually.js';
import { startProgram, type Program } from '../support/services/program.js';
import { Receiver } from '../support/emulators/webhook-receiver.js';
import { cli, Client, startService, type Service } from '../support/services/service.js';

type Line = {
  time: string;
  level: string;
  process: string;
  message: string;
  context?: string;
  request_id?: string;
  denial?: string;
  idempotency_key?: string;
  bytes?: number;
  database_ms?: number;
  milliseconds?: number;
};

const SLOW = 300_000;
const PASSWORD = 'correct horse';
const PLANTED = {
  name: 'Plantedname',
  email: 'planted@person.example',
  phone: '+4915112345678',
  note: 'planted-note',
  query: 'planted-query',
  body: 'planted-response',
  key: 'planted-key',
};

describe('with LOG_FORMAT=json and LOG_LEVEL=debug', () => {
  let database: TestDatabase;
  let owner: Service;
  let receiver: Receiver;
  let api: Program;
  let dispatcher: Program;
  let client: Client;
  let metricsPort: string;
  let secrets: string[];

  const parseLines = (program: Program): Line[] =>
    program
      .output()
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as Line);

  beforeAll(async () => {
    database = await createTestDatabase();
    owner = await startService({ WEBHOOK_ALLOW_INSECURE_TARGETS: 'true' }, database);
    receiver = await Receiver.start((_, nth) => ({
      status: nth % 2 === 0 ? 500 : 200,
      body: PLANTED.body,
    }));
    const store = await owner.newStore();
    const environment = createTestEnvironment(database.url, {
      ...owner.environment,
      LOG_FORMAT: 'json',
      LOG_LEVEL: 'debug',
      WEBHOOK_ALLOW_INSECURE_TARGETS: 'true',
      WEBHOOK_TIME_SCALE: '100',
    });
    api = startProgram('dist/apps/api/main.js', environment);
    dispatcher = startProgram('dist/apps/dispatcher/main.js', environment);
    const output = await eventually(api.output, (text) => text.includes('listening on'), SLOW);
    const startOutput = await eventually(
      dispatcher.output,
      (text) => text.includes('started'),
      SLOW,
    );
    metricsPort = /"on port (\d+)"/.exec(startOutput)?.[1] ?? '';
    const address = /listening on (http:[^"\s]+)/.exec(output)?.[1] ?? '';
    client = new Client(address, store.accountId, store.token);
    secrets = [...Object.values(PLANTED), String(client.token), String(environment['MASTER_KEY'])];
  }, SLOW);

  afterAll(async () => {
    await Promise.all([api, dispatcher].map((program) => program.kill('SIGTERM')));
    await receiver.stop();
    await owner.stop();
  }, SLOW);

  it(
    'log lines of requests and denials have ids, and no secrets or personal data',
    async () => {
      const subscription = await client.post<{ secret: string }>(
        `${client.store}/webhook_subscriptions`,
        { target_url: `${receiver.url}?token=${PLANTED.query}`, events: ['*'] },
      );
      expect(subscription.status).toBe(201);
      secrets.push(subscription.body.secret);
      const unreachable = await client.post(`${client.store}/webhook_subscriptions`, {
        target_url: `http://127.0.0.1:1/${PLANTED.query}`,
        events: ['*'],
      });
      expect(unreachable.status).toBe(201);
      for (let i = 0; i < 4; i++) {
        const customer = await client.post(`${client.store}/customers`, {
          customer: {
            first_name: PLANTED.name,
            email: `${i}${PLANTED.email}`,
            phone: PLANTED.phone.replace(/.$/, String(i)),
          },
        });
        expect(customer.status).toBe(201);
      }
      const newCard = { card: { name: 'Coffee' } };
      const key = { 'idempotency-key': PLANTED.key };
      const card = await client.send('POST', `${client.store}/cards`, newCard, key);
      expect(card.status).toBe(201);
      const repeated = await client.send('POST', `${client.store}/cards`, newCard, key);
      expect(repeated.status).toBe(201);
      const rejection = await client.send(
        'POST',
        `${client.store}/customers?q=${PLANTED.query}`,
        { customer: { email: `not-an-address ${PLANTED.email}` } },
        { 'x-request-id': 'till-9' },
      );
      expect(rejection.status).toBe(422);
      expect((await client.get(`${client.store}/customers/${PLANTED.email}`)).status).toBe(404);
      expect((await client.get(`/${PLANTED.email}/${PLANTED.phone}`)).status).toBe(404);
      const malformed = await client.send('POST', `${client.store}/customers`, `{"${PLANTED.note}`);
      expect(malformed.status).toBe(400);
      const stranger = new Client(client.baseUrl, client.accountId, `${String(client.token)}x`);
      expect((await stranger.get(client.store)).status).toBe(401);
      const staff = await owner.execute(new CreateUser(cli, 'staff@x.example', 'Staff', PASSWORD));
      await owner.execute(new AddMember(cli, client.accountId, staff.userId, 'staff'));
      const { token } = await owner.execute(new CreateToken(cli, staff.userId, 'staff'));
      const staffClient = new Client(client.baseUrl, client.accountId, token);
      expect((await staffClient.get(`${client.store}/audit`)).status).toBe(403);
      const browser = new Browser(client);
      expect((await browser.signIn('staff@x.example', PASSWORD)).status).toBe(303);
      expect((await browser.get(`/app/stores/${client.accountId}/audit`)).status).toBe(403);
      const ownRole = `/app/stores/${client.accountId}/users/${staff.userId}/role`;
      const promotion = { role: 'owner', sure: 'yes' };
      expect((await browser.post(ownRole, promotion)).status).toBe(303);
      expect((await browser.post('/app/sign-out', { _csrf: 'x' })).status).toBe(403);
      const elsewhere = new Browser(client, 'https://evil.example');
      expect((await elsewhere.signIn('staff@x.example', PASSWORD)).status).toBe(403);
      await eventually(
        () => receiver.received.length,
        (count) => count >= 5,
        SLOW,
      );
      await database.query('alter table customers rename to customers_away');
      expect((await client.get(`${client.store}/customers`)).status).toBe(500);
      await database.query('alter table customers_away rename to customers');

      await eventually(
        () => parseLines(api),
        (all) => all.some(({ level }) => level === 'error'),
      );
      const all = [...parseLines(api), ...parseLines(dispatcher)];
      for (const line of all) {
        expect(line).toMatchObject({
          time: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
          level: expect.stringMatching(/^(debug|info|warn|error|fatal)$/),
          process: expect.stringMatching(/^(api|dispatcher)$/),
          message: expect.any(String),
        });
      }
      expect(all).toContainEqual(
        expect.objectContaining({
          context: 'http',
          message: `POST ${client.store}/customers 422`,
          request_id: 'till-9',
          status: 422,
          token_id: expect.any(Number),
          actor: expect.stringMatching(/^token \d+$/),
          account_id: client.accountId,
          ip: '127.0.0.1',
          bytes: expect.any(Number),
          database_ms: expect.any(Number),
        }),
      );
      const keyed = all.filter((line) => line.idempotency_key !== undefined);
      expect(keyed).toMatchObject([
        { message: `POST ${client.store}/cards 201`, idempotency_key: expect.any(String) },
        { message: `POST ${client.store}/cards 201`, idempotency_key: keyed[0]?.idempotency_key },
      ]);
      expect(keyed[0]?.idempotency_key).toMatch(/^[\da-f]{16}$/);
      const [first, replayed] = keyed.map(({ bytes = 0 }) => bytes);
      // The same body, and one header more.
      expect(Number(replayed) - Number(first)).toBe('idempotent-replayed: true\r\n'.length);
      expect(keyed[0]?.bytes).toBeGreaterThan(card.text.length);
      const waits = all.filter(({ message }) => / (201|303)$/.test(message));
      expect(waits.length).toBeGreaterThan(4);
      for (const { database_ms = 0, milliseconds = 0 } of waits) {
        expect(database_ms).toBeGreaterThan(0);
        expect(database_ms).toBeLessThanOrEqual(milliseconds + 1);
      }
      const user = { user_id: staff.userId, ip: '127.0.0.1' };
      const store = { account_id: client.accountId, denial: 'role', ip: '127.0.0.1' };
      expect(all.filter(({ denial }) => denial !== undefined)).toMatchObject([
        { message: `GET ${client.store}/audit 403`, token_id: expect.any(Number), ...store },
        { message: `GET /app/stores/${client.accountId}/audit 403`, ...user, ...store },
        { message: `POST ${ownRole} 303`, ...user, ...store },
        { message: 'POST /app/sign-out 403', ...user, denial: 'csrf_token' },
        { message: 'POST /app/sign-in 403', denial: 'cross_site', ip: '127.0.0.1' },
      ]);
      const failure = all.find(({ level }) => level === 'error');
      expect(failure?.request_id).toMatch(/^[\da-f-]{36}$/);

      const text = api.output() + dispatcher.output();
      for (const secret of secrets) expect(text).not.toContain(secret);
      expect(text).not.toContain(database.url);
    },
    SLOW,
  );

  it('GET /metrics of the dispatcher counts deliveries, attempts and retries, and contains no ids or personal data', async () => {
    const readMetrics = async () =>
      samples(await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text());
    const attempts = (result: string) => ({ result, kind: 'scheduled' });
    const minimums: [name: string, labels: Labels, minimum: number][] = [
      ['inkpad_webhook_deliveries_total', { status: 'delivered' }, 4],
      ['inkpad_webhook_attempt_seconds_count', attempts('2xx'), 4],
      ['inkpad_webhook_attempt_seconds_count', attempts('5xx'), 1],
      ['inkpad_webhook_attempt_seconds_count', attempts('connection'), 1],
      ['inkpad_webhook_retries_total', { attempt: '2' }, 1],
      ['inkpad_webhook_delivery_seconds_count', {}, 4],
      ['inkpad_webhook_schedule_lag_seconds_count', {}, 5],
      ['inkpad_webhook_enqueue_seconds_count', {}, 4],
      ['inkpad_webhook_connections_opened_total', {}, 1],
      ['inkpad_webhook_queues_total', { change: 'claimed' }, 2],
      ...['claim', 'take', 'record', 'enqueue'].map((statement): [string, Labels, number] => [
        'inkpad_webhook_statement_seconds_count',
        { statement },
        1,
      ]),
      ...['webhook fan-out', 'history', 'statistics', 'imports', 'passes'].map(
        (work): [string, Labels, number] => ['inkpad_leads', { work }, 1],
      ),
    ];
    const now = await eventually(
      readMetrics,
      (all) =>
        minimums.every(([name, labels, minimum]) => (all.value(name, labels) ?? 0) >= minimum) &&
        (all.value('inkpad_queue_unclaimed_seconds', { queue: 'imports' }) ?? Infinity) < 10,
      SLOW,
    );
    expect(now.value('inkpad_webhook_partitions_ahead_days')).toBe(7);
    expect(now.value('inkpad_webhook_partitions_kept_days')).toBeGreaterThanOrEqual(1);
    expect(now.has('inkpad_subscription_lag_seconds', { subscription: 'webhooks' })).toBe(true);
    expect(now.has('inkpad_oldest_writer_seconds')).toBe(true);
    expect(now.value('inkpad_database_resource_errors_total', { resource: 'disk_space' })).toBe(0);
    expect(now.value('inkpad_backup_timestamp_seconds')).toBe(0);
    expect(now.has('inkpad_memory_limit_bytes')).toBe(true);
    expect(now.value('inkpad_reachable', { part: 'database' })).toBe(1);
    for (const secret of secrets) expect(now.text).not.toContain(secret);
    expect(now.text).not.toMatch(/(account|customer|subscription|delivery)_id=/);
  });

  it(
    'GET /metrics of the dispatcher names the oldest transaction that holds back readers of the event log',
    async () => {
      await database.query('begin');
      await database.query('create table held (id int)');
      const now = await eventually(
        async () => samples(await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text()),
        (all) => (all.value('inkpad_oldest_writer_seconds') ?? 0) > 1,
        SLOW,
      );
      expect(now.text).toMatch(/inkpad_oldest_writer_info\{pid="\d+",application_name="[^"]*"\} 1/);
      await database.query('rollback');
    },
    SLOW,
  );
});

describe('lines of the log in JSON', () => {
  const COUNT = 1_000;

  /** A program that logs lines, each of a kilobyte, and then ends in this way. */
  const startLogging = (count: number, end: string) => {
    const kernel = new URL('../../dist/libs/platform/kernel/', import.meta.url).href;
    const text = `
      import { Log } from '${kernel}log.js';
      import { reportUnhandled } from '${kernel}start-error.js';
      reportUnhandled({ program: 'api', format: 'json' });
      process.on('SIGTERM', () => process.exit(0));
      const log = new Log({ logLevel: 'info', logFormat: 'json' }, 'api');
      for (let i = 0; i < ${count}; i++) log.log(i + 'x'.repeat(1000));
      process.stderr.write('logged');
      ${end};`;
    const parameters = ['--input-type=module', '--eval', text];
    const child = spawn(process.execPath, parameters, { stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    const read = () => child.stdout.on('data', (chunk) => (output += String(chunk)));
    return { child, read, lines: () => output.split('\n').filter((line) => line.endsWith('}')) };
  };

  it.each(['process.exit(0)', "throw new Error('a bug')", "process.kill(process.pid, 'SIGTERM')"])(
    'are all there after %s, though their reader is slow',
    async (end) => {
      const { child, read, lines } = startLogging(COUNT, end);
      await once(child.stderr, 'data');
      read();
      await once(child, 'close');
      const numbers = lines().map((line) => parseInt((JSON.parse(line) as Line).message, 10));
      expect(numbers).toEqual(Array.from({ length: COUNT }, (_, i) => i));
    },
  );

  it('do not hold up the process while nobody reads them, and say how many were lost', async () => {
    const end = "let n = 0; setInterval(() => log.log('later ' + n++), 10)";
    const { child, read, lines } = startLogging(20_000, end);
    await once(child.stderr, 'data');
    read();
    const all = await eventually(lines, (list) => list.at(-1)?.includes('later') === true);
    child.kill('SIGKILL');
    const parsed = all.map((line) => JSON.parse(line) as Line & { lost_lines?: number });
    const later = parsed.filter(({ message }) => message.startsWith('later'));
    // Until the reader has made room, lines of the interval are lost, too.
    const alsoLostCount = Number(later[0]?.message.split(' ')[1]);
    const [lost] = parsed.flatMap(({ lost_lines: count }) => count ?? []);
    expect(lost).toBeGreaterThan(0);
    expect(parsed.length - later.length + Number(lost)).toBe(20_000 + alsoLostCount);
  });
});
