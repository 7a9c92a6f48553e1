import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Webhook } from 'standardwebhooks';
import { eventually } from '../support/jest/eventually.js';
import { prepareReceiver, RECEIVERS, startReceiver } from '../support/guides/receivers.js';
import { findFreePort, type Program } from '../support/services/program.js';
import { startService, type Client, type Service } from '../support/services/service.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import { startDispatcher } from '../support/services/webhook-dispatcher.js';

/** Runs the receivers of docs/receivers unchanged, behind a real dispatcher. */

const SLOW = 300_000;
const SECRET = `whsec_${Buffer.alloc(32, 9).toString('base64')}`;

let service: Service;
let dispatcher: Program;
const runningPrograms: Program[] = [];
const folders: string[] = [];

beforeAll(async () => {
  service = await startService({ WEBHOOK_ALLOW_INSECURE_TARGETS: 'true' });
  dispatcher = await startDispatcher(service);
}, SLOW);

afterEach(async () => {
  await Promise.all(runningPrograms.splice(0).map((program) => program.kill('SIGKILL')));
});

afterAll(async () => {
  await dispatcher.kill('SIGTERM');
  await service.stop();
  for (const folder of folders) rmSync(folder, { recursive: true });
}, SLOW);

describe.each(Object.entries(RECEIVERS))('the receiver in %s', (name, language) => {
  let folder: string;
  let port: number;
  let url: string;

  beforeAll(async () => {
    folder = prepareReceiver(language);
    folders.push(folder);
    port = await findFreePort();
    url = `http://127.0.0.1:${port}/hooks`;
  }, SLOW);

  /** Starts the processes of the receiver. @returns a function that reads their output */
  async function start(secret: string): Promise<() => string> {
    const programs = await startReceiver(language, folder, { secret, port });
    runningPrograms.push(...programs);
    return () => programs.map(({ output }) => output()).join('');
  }

  const parseHandledIds = (output: string) =>
    [...output.matchAll(/^handled (\w+)/gm)].map(([, id]) => id);

  /** Waits until the receiver has recorded every stored event as handled. */
  async function waitUntilHandled(): Promise<void> {
    await eventually(
      () => readdirSync(join(folder, 'events')),
      (files) =>
        files
          .filter((file) => file.endsWith('.json'))
          .every((file) => files.includes(file.replace(/json$/, 'done'))),
    );
  }

  async function post(headers: Record<string, string>, body: string | Buffer): Promise<number> {
    return (await fetch(url, { method: 'POST', headers, body })).status;
  }

  function signHeaders(id: string, body: string, at = new Date()): Record<string, string> {
    return {
      'content-type': 'application/json',
      'webhook-id': id,
      'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
      'webhook-signature': new Webhook(SECRET).sign(id, at, body),
    };
  }

  it(
    'handles each event of a dispatcher once, even when it is replayed',
    async () => {
      const store: Client = await service.newStore();
      const hooks = `${store.store}/webhook_subscriptions`;
      const subscription = await store.post<{ id: number; secret: string }>(hooks, {
        events: ['*'],
        target_url: url,
      });
      const output = await start(subscription.body.secret);
      const { path } = await enrol(store);
      expect((await store.stamp(path, 2)).status).toBe(200);
      const ids = await eventually(
        () => parseHandledIds(output()),
        (all) => all.length >= 4,
      );
      const { body: feed } = await store.get<{ id: string }[]>(`${store.store}/events`);
      // Events that arrive together are handled in the order of their files, and ids of the same millisecond have none.
      expect(ids.toSorted()).toEqual(feed.map(({ id }) => id).toSorted());

      const from = '2000-01-01T00:00:00Z';
      const replay = await store.post(`${hooks}/${subscription.body.id}/replay`, { from });
      expect(replay).toMatchObject({ status: 200, body: { matched: ids.length } });
      const deliveries = await eventually(
        async () =>
          (
            await store.get<{ status: string; attempts_count: number }[]>(
              `${hooks}/${subscription.body.id}/deliveries`,
            )
          ).body,
        (all) => all.length === 2 * ids.length && all.every(({ status }) => status === 'delivered'),
      );
      expect(deliveries.every(({ attempts_count: count }) => count === 1)).toBe(true);
      expect(parseHandledIds(output())).toEqual(ids);
      await waitUntilHandled();
    },
    SLOW,
  );

  it(
    'rejects a request with a wrong or old signature, an unsafe id, or a body over 1 MiB',
    async () => {
      const output = await start(SECRET);
      const body = '{"id":"evt_refused","type":"webhook.test"}';
      const validHeaders = signHeaders('evt_refused', body);
      const long = ' '.repeat(1024 * 1024 + 1);
      const minutes = (count: number) => new Date(Date.now() + count * 60_000);
      const without = (missing: string) =>
        Object.fromEntries(Object.entries(validHeaders).filter(([header]) => header !== missing));
      const invalidRequests: [string, Record<string, string>, string, number][] = [
        ['another body', validHeaders, `${body} `, 401],
        ['another id', { ...validHeaders, 'webhook-id': 'evt_other' }, body, 401],
        ['no signature', without('webhook-signature'), body, 401],
        ['no id', without('webhook-id'), body, 401],
        ['no timestamp', without('webhook-timestamp'), body, 401],
        ['an invalid timestamp', { ...validHeaders, 'webhook-timestamp': 'now' }, body, 401],
        ['an old signature', signHeaders('evt_refused', body, minutes(-6)), body, 401],
        ['a signature from the future', signHeaders('evt_refused', body, minutes(6)), body, 401],
        ['an id that is a path', signHeaders('../evt', body), body, 400],
        ['a huge body', signHeaders('evt_refused', long), long, 413],
      ];
      for (const [label, headers, text, status] of invalidRequests) {
        expect([label, await post(headers, text)]).toEqual([label, status]);
      }
      expect(await post(validHeaders, body)).toBe(204);
      await eventually(
        () => parseHandledIds(output()),
        (ids) => ids.includes('evt_refused'),
      );
      await waitUntilHandled();
      expect(readdirSync(join(folder, 'events')).filter((file) => file.includes('other'))).toEqual(
        [],
      );
    },
    SLOW,
  );

  it(
    'handles stored events after a restart, and none a second time',
    async () => {
      const events = join(folder, 'events');
      const body = '{"id":"evt_left","type":"webhook.test"}';
      // Stored and confirmed, but not handled when the receiver was killed.
      writeFileSync(join(events, 'evt_left.json'), body);
      const output = await start(SECRET);
      await eventually(
        () => parseHandledIds(output()),
        (ids) => ids.includes('evt_left'),
      );
      await waitUntilHandled();
      expect(await post(signHeaders('evt_left', body), body)).toBe(204);
      expect(
        await post(
          signHeaders('evt_new', '{"id":"evt_new","type":"x"}'),
          '{"id":"evt_new","type":"x"}',
        ),
      ).toBe(204);
      await eventually(
        () => parseHandledIds(output()),
        (ids) => ids.includes('evt_new'),
      );
      expect(parseHandledIds(output())).toEqual(['evt_left', 'evt_new']);
      expect(readFileSync(join(events, 'evt_left.json'), 'utf8')).toBe(body);
      const drafts = readdirSync(events).filter((file) => !/[.](json|done)$/.test(file));
      expect([name, drafts]).toEqual([name, []]);
    },
    SLOW,
  );
});
