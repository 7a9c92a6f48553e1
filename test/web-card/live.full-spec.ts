import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Registry } from 'prom-client';
import { useService } from '../support/http/contract.js';
import { EventStream } from '../support/http/event-stream.js';
import { eventually } from '../support/jest/eventually.js';
import type { Program } from '../support/services/program.js';
import { startSecondApi } from '../support/services/second-api.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import { startDispatcher } from '../support/services/webhook-dispatcher.js';

const service = useService();
const store = service.useStore();
let dispatcher: Program;
const streams: EventStream[] = [];

beforeAll(async () => {
  dispatcher = await startDispatcher(service.running);
});
afterEach(async () => {
  for (const stream of streams.splice(0)) stream.close();
  await eventually(openCards, (count) => count === 0);
});
afterAll(() => dispatcher.kill('SIGTERM'));

async function openCards(): Promise<number> {
  const registry = service.running.app.get(Registry, { strict: false });
  const [{ value } = { value: 0 }] =
    (await registry.getSingleMetric('inkpad_open_cards')?.get())?.values ?? [];
  return value;
}

async function open(page: string, headers: Record<string, string> = {}, base?: string) {
  const url = `${base ?? service.running.baseUrl}${page}`;
  const stream = await EventStream.open(url, headers);
  streams.push(stream);
  return stream;
}

/** The page with the tag that it shows. */
async function fetchPage(page: string): Promise<{ tag: number; text: string }> {
  const text = await (await fetch(service.running.baseUrl + page)).text();
  return { tag: Number(/data-tag="(\d+)"/.exec(text)?.[1]), text };
}

describe('events of a web card', () => {
  it('WEBCARD-15 The event `changed` says that the card has changed, with a number that rises from change to change', async () => {
    const { page, stamp, customerCard } = await enrol(store);
    const { tag } = await fetchPage(page);
    const stream = await open(`${page}/events?since=${tag}`);
    expect([stream.status, stream.headers['content-type']]).toEqual([200, 'text/event-stream']);
    expect(stream.headers['cache-control']).toBe('no-store, no-transform');
    await stamp(2);
    const changed = await stream.changed();
    expect(changed).toBeGreaterThan(tag);
    expect(stream.events.at(-1)).toEqual({
      event: 'changed',
      id: String(changed),
      data: String(changed),
    });
    expect(stream.retryMs).toBeGreaterThanOrEqual(2_000);
    const after = await fetchPage(page);
    // It may have risen once more: a stamp is noticed for what it shows, and for whom it is to be told.
    expect(after.tag).toBeGreaterThanOrEqual(changed);
    expect(after.text).toContain(`2 / ${customerCard.stamps_remaining}`);
  });

  it('WEBCARD-16 The event `changed` reaches every open page, whichever process stamped', async () => {
    const { page, stamp } = await enrol(store);
    const { tag } = await fetchPage(page);
    const { program, second } = await startSecondApi(service.running, store);
    try {
      const here = await open(`${page}/events?since=${tag}`);
      const there = await open(`${page}/events?since=${tag}`, {}, second.baseUrl);
      await stamp(1);
      await Promise.all([here.changed(), there.changed()]);
      expect(there.changes[0]).toBe(here.changes[0]);
      // It ends as soon as its process is asked to, for the browser to go to another.
      await program.kill('SIGTERM');
      await eventually(
        () => there.ended,
        (ended) => ended,
      );
      expect(here.ended).toBe(false);
    } finally {
      await program.kill('SIGKILL');
    }
  });

  it('WEBCARD-17 A page that connects with an older number, as `since` or `Last-Event-ID`, with none, or with one that was never given out, is told at once', async () => {
    const { page, stamp } = await enrol(store);
    const { tag } = await fetchPage(page);
    await stamp(1);
    const { tag: newest } = await eventually(
      () => fetchPage(page),
      (result) => result.tag > tag,
    );
    const since = await open(`${page}/events?since=${tag}`);
    expect(await since.changed()).toBeGreaterThanOrEqual(newest);
    // The browser's own last event counts more than the page's initial tag.
    const again = await open(`${page}/events?since=${tag}`, { 'last-event-id': String(newest) });
    await stamp(1);
    expect(await again.changed()).toBeGreaterThan(newest);
    expect(again.changes.every((change) => change > newest)).toBe(true);
    const { page: unchanged } = await enrol(store);
    const { tag: first } = await fetchPage(unchanged);
    const never = ['999999999', '999999999999999', '-1', 'nonsense', '1e3', ''];
    for (const tag of never) {
      expect(await (await open(`${unchanged}/events?since=${tag}`)).changed()).toBe(first);
      const seen = await open(`${unchanged}/events?since=${first}`, { 'last-event-id': tag });
      expect([tag, await seen.changed()]).toEqual([tag, first]);
      for (const stream of streams.splice(0)) stream.close();
      await eventually(openCards, (count) => count === 0);
    }
    expect(await (await open(`${unchanged}/events`)).changed()).toBe(first);
    expect(await (await open(`${unchanged}/events?since=1&since=2`)).changed()).toBe(first);
  });

  it('WEBCARD-30 After a backup was restored, a page whose number lies ahead is told that the card has changed, and of every change from then on', async () => {
    const { page, stamp } = await enrol(store);
    await fetchPage(page);
    await stamp(1);
    const { tag: before } = await eventually(
      () => fetchPage(page),
      ({ tag }) => tag > 0,
    );
    const { stream } = await eventually(
      async () => {
        // As in an earlier backup. A stamp that is noticed once more after this raises the number again.
        await service.running.database.query(`select setval('pass_tags', 1, false)`);
        await service.running.database.query(
          'update passes set tag = 0, balance_tag = 0, notification_tag = 0, notification = null',
        );
        const stream = await open(`${page}/events?since=${before}`);
        return { stream, tag: await stream.changed() };
      },
      ({ tag }) => tag === 0,
    );
    await stamp(1);
    expect(await stream.changed(1)).toBeGreaterThan(0);
    expect((await fetchPage(page)).text).toContain('2 / 10');
  });

  it('WEBCARD-18 One more open page than the operator allows for an address is 429, and one more in all 503, each with `Retry-After`', async () => {
    const { page } = await enrol(store);
    const from = (address: string) => ({ 'x-forwarded-for': address });
    const refused = await startSecondApi(
      {
        ...service.running,
        environment: {
          ...service.running.environment,
          TRUST_PROXY_HOPS: '1',
          MAX_OPEN_CARDS: '100',
        },
      },
      store,
    );
    try {
      const base = refused.second.baseUrl;
      const path = `${page}/events`;
      for (let i = 0; i < 2; i++)
        expect((await open(path, from('203.0.113.1'), base)).status).toBe(200);
      const third = await open(path, from('203.0.113.1'), base);
      expect([third.status, third.headers['retry-after']]).toEqual([429, '30']);
      for (let i = 2; i < 100; i++)
        expect((await open(path, from(`203.0.113.${i}`), base)).status).toBe(200);
      expect((await open(path, from('203.0.113.100'), base)).status).toBe(503);
      streams[0]?.close();
      await eventually(
        async () => (await open(path, from('203.0.113.1'), base)).status,
        (status) => status === 200,
      );
    } finally {
      await refused.program.kill('SIGKILL');
    }
  });

  it('WEBCARD-19 `/events` without a card is 404', async () => {
    const stream = await open(`/passes/${crypto.randomUUID()}/events`);
    expect(stream.status).toBe(404);
  });

  it('WEBCARD-28 HEAD of `/events` keeps nothing open', async () => {
    const { page } = await enrol(store);
    for (let i = 0; i < 9; i++) {
      const response = await fetch(`${service.running.baseUrl}${page}/events`, { method: 'HEAD' });
      expect([response.status, response.headers.get('content-type')]).toEqual([
        200,
        'text/event-stream',
      ]);
    }
    await eventually(openCards, (count) => count === 0);
  });
});
