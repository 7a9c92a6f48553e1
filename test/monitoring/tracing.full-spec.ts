import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import {
  createTestDatabase,
  createTestEnvironment,
  type TestDatabase,
} from '../support/database/database.js';
import { eventually } from '../support/jest/eventually.js';
import { startProgram, type Program } from '../support/services/program.js';
import { Receiver } from '../support/emulators/webhook-receiver.js';
import { Client, startService, type Service } from '../support/services/service.js';
import { SpanReceiver, type Span } from '../support/emulators/span-receiver.js';

const SLOW = 300_000;
const TRACE = '0af7651916cd43dd8448eb211c80319c';
const CALLER = 'b7ad6b7169203331';

describe('tracing', () => {
  let database: TestDatabase;
  let owner: Service;
  let collector: SpanReceiver;
  let receiver: Receiver;
  let programs: Program[];
  let till: Client;

  const environment = () =>
    createTestEnvironment(database.url, {
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_BSP_SCHEDULE_DELAY: '100',
      WEBHOOK_ALLOW_INSECURE_TARGETS: 'true',
      LOG_LEVEL: 'info',
    });
  const spans = (holds: (span: Span) => boolean) => collector.spans.filter(holds);

  beforeAll(async () => {
    database = await createTestDatabase();
    owner = await startService({ WEBHOOK_ALLOW_INSECURE_TARGETS: 'true' }, database);
    collector = await SpanReceiver.start();
    receiver = await Receiver.start();
    const store = await owner.newStore();
    const api = startProgram('dist/apps/api/main.js', environment());
    const dispatcher = startProgram('dist/apps/dispatcher/main.js', environment());
    programs = [api, dispatcher];
    const listening = /listening on (http:\S+)/;
    const output = await eventually(api.output, (text) => listening.test(text), SLOW);
    await eventually(dispatcher.output, (text) => text.includes('started'), SLOW);
    till = new Client(listening.exec(output)?.[1] ?? '', store.accountId, store.token);
  }, SLOW);

  afterAll(async () => {
    await Promise.all(programs.map((program) => program.kill('SIGTERM')));
    await receiver.stop();
    await collector.stop();
    await owner.stop();
  }, SLOW);

  it(
    'puts the spans of a request, its command and its commit into the trace of the caller, without secrets',
    async () => {
      const response = await till.send<{ id: number }>(
        'POST',
        `${till.store}/cards?secret=query`,
        { card: { name: 'Tea at dawn' } },
        { traceparent: `00-${TRACE}-${CALLER}-01`, 'x-request-id': 'till-7' },
      );
      expect(response.status).toBe(201);
      await eventually(
        () => spans(({ traceId }) => traceId === TRACE).map(({ name }) => name),
        (names) => names.length === 3,
      );
      const [request] = spans(({ kind, traceId }) => kind === 2 && traceId === TRACE);
      expect(request).toMatchObject({
        service: 'inkpad-api',
        name: 'POST /api/v1/accounts/:account_id/cards',
        parentSpanId: CALLER,
        attributes: {
          'http.request.method': 'POST',
          'http.route': '/api/v1/accounts/:account_id/cards',
          'http.response.status_code': 201,
          'inkpad.request_id': 'till-7',
        },
      });
      const [command] = spans(({ name }) => name === 'CreateCard');
      expect(command).toMatchObject({ traceId: TRACE, parentSpanId: request?.spanId });
      const [commit] = spans(({ name, traceId }) => name === 'commit' && traceId === TRACE);
      expect(commit).toMatchObject({
        parentSpanId: command?.spanId,
        attributes: {
          'inkpad.commands': 1,
          'inkpad.event_ids': [expect.stringMatching(/^evt_[0-9A-Z]{26}$/)],
        },
      });
      expect(collector.text).not.toContain('secret');
      expect(collector.text).not.toContain('Tea at dawn');
      expect(collector.text).not.toContain(String(till.token));
    },
    SLOW,
  );

  it(
    'gives a webhook attempt a trace of its own with its event id, and sends no trace headers to the receiver',
    async () => {
      const subscription = await till.post<{ id: number }>(`${till.store}/webhook_subscriptions`, {
        target_url: `${receiver.url}?key=planted-key`,
        events: ['*'],
      });
      expect(subscription.status).toBe(201);
      const customer = await till.post<{ id: number }>(`${till.store}/customers`, {
        customer: { first_name: 'Planted', email: 'jo@planted.example' },
      });
      expect(customer.status).toBe(201);
      const [webhook] = await eventually(
        () => receiver.received,
        (all) => all.length > 0,
      );
      expect(Object.keys(webhook?.headers ?? {})).not.toContain('traceparent');
      expect(Object.keys(webhook?.headers ?? {})).not.toContain('tracestate');

      const eventId = webhook?.headers['webhook-id'];
      const [attempt] = await eventually(
        () => spans(({ name }) => name === 'webhook attempt'),
        (result) => result.length > 0,
      );
      expect(attempt).toMatchObject({
        service: 'inkpad-dispatcher',
        kind: 3,
        attributes: {
          'inkpad.event_id': eventId,
          'inkpad.webhook_subscription_id': subscription.body.id,
          'http.response.status_code': 200,
          'server.address': '127.0.0.1',
        },
      });
      expect(attempt?.parentSpanId ?? '').toBe('');
      const [commit] = await eventually(
        () =>
          spans(({ attributes }) =>
            [attributes['inkpad.event_ids']].flat().includes(eventId ?? 'none'),
          ),
        (result) => result.length > 0,
      );
      expect(commit?.service).toBe('inkpad-api');
      await eventually(
        () => spans(({ name }) => name === 'webhook fan-out'),
        (result) => result.length > 0,
      );
      for (const secret of ['planted', 'Planted']) expect(collector.text).not.toContain(secret);
    },
    SLOW,
  );

  it(
    'warns once when the collector cannot be reached, while the api serves requests',
    async () => {
      const program = startProgram('dist/apps/api/main.js', {
        ...environment(),
        OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1',
      });
      const listening = /listening on (http:\S+)/;
      const output = await eventually(program.output, (text) => listening.test(text), SLOW);
      const baseUrl = listening.exec(output)?.[1] ?? '';
      const requestAndReadOutput = async () => {
        expect((await fetch(`${baseUrl}/api/v1/status`)).status).toBe(200);
        return program.output();
      };
      const warnings = await eventually(
        requestAndReadOutput,
        (text) => text.includes('spans cannot be sent'),
        SLOW,
      );
      expect(warnings.match(/spans cannot be sent/g)).toHaveLength(1);
      await program.kill('SIGTERM');
    },
    SLOW,
  );
});
