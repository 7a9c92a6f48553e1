import { describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { DataSource } from 'typeorm';
import { getPool } from '#platform/database/data-source.js';
import { CreateToken, LimitToken } from '#identity/token.commands.js';
import type { CustomerCardDetailJson } from '#loyalty/stamping/customer-card.dto.js';
import type { RewardJson } from '#loyalty/rewards/reward.dto.js';
import type { WebhookSubscriptionSecretJson } from '#outbound/subscriptions/webhook-subscription.dto.js';
import { expectFailure, expectRefused, useService } from '../support/http/contract.js';
import { createTestEnvironment } from '../support/database/database.js';
import { eventually } from '../support/jest/eventually.js';
import { findFreePort, startProgram } from '../support/services/program.js';
import { Receiver } from '../support/emulators/webhook-receiver.js';
import { Client, cli, type ApiResponse } from '../support/services/service.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';

const service = useService({ WEBHOOK_ALLOW_INSECURE_TARGETS: 'true' });
const store = service.useStore();

type Key = { 'idempotency-key': string };

const key = (text: string = randomUUID()): Key => ({ 'idempotency-key': text });
const isRepeated = ({ headers }: ApiResponse<unknown>) =>
  headers.get('idempotent-replayed') === 'true';

const stamp = (
  path: string,
  headers: Record<string, string>,
  body: unknown = { stamps: 1 },
  by: Client = store,
) => by.send<CustomerCardDetailJson>('POST', `${path}/stamp`, body, headers);

const sql = async <R extends object>(text: string): Promise<R[]> =>
  (await getPool(service.running.app.get(DataSource)).query<R>(text)).rows;

describe('idempotency keys', () => {
  it('RETRY-01 Without `Idempotency-Key` two identical requests are executed twice', async () => {
    const { path } = await enrol(store);
    await stamp(path, {});
    await stamp(path, {});
    expect(await store.readBalance(path)).toBe(2);
  });

  it('RETRY-02 Repeating the same `Idempotency-Key` and body returns the first status and body, and executes nothing', async () => {
    const { path } = await enrol(store);
    const once = key();
    const first = await stamp(path, once);
    await stamp(path, {});
    const again = await stamp(path, once);
    expect([again.status, again.text]).toEqual([first.status, first.text]);
    expect(await store.readBalance(path)).toBe(2);
  });

  it('RETRY-03 A replayed response has the header `Idempotent-Replayed: true`; the first one does not', async () => {
    const { path } = await enrol(store);
    const once = key();
    expect((await stamp(path, once)).headers.get('idempotent-replayed')).toBeNull();
    expect((await stamp(path, once)).headers.get('idempotent-replayed')).toBe('true');
  });

  it('RETRY-04 The bodies of repeated requests are compared as JSON values: order of keys and white space do not matter', async () => {
    const { path } = await enrol(store);
    const once = key();
    await stamp(path, once, '{"stamps":1,"note":"x"}');
    const again = await stamp(path, once, '{ "note": "\\u0078", "stamps": 1.0 }');
    expect([again.status, isRepeated(again)]).toEqual([200, true]);
    // Valid in JSON, but not representable in every program.
    const odd = '{"stamps":1,"half":"\\ud83d","far":1e400}';
    const twice = key();
    const responses = [await stamp(path, twice, odd), await stamp(path, twice, ` ${odd}`)];
    expect(responses.map((response) => [response.status, isRepeated(response)])).toEqual([
      [200, false],
      [200, true],
    ]);
  });

  it('RETRY-05 A used `Idempotency-Key` with another body is 422 `idempotency_key_reused`', async () => {
    const { path } = await enrol(store);
    const once = key();
    await stamp(path, once);
    const otherResponse = await stamp(path, once, { stamps: 2 });
    expectRefused(otherResponse, 'idempotency_key', 'idempotency_key_reused');
    expect(await store.readBalance(path)).toBe(1);
    const noted = key();
    await stamp(path, noted, '{"stamps":1,"note":null}');
    const far = await stamp(path, noted, '{"stamps":1,"note":1e400}');
    expectRefused(far, 'idempotency_key', 'idempotency_key_reused');
    const customers = `${store.store}/customers`;
    const anna = { first_name: 'Anna', email: 'anna.berg@example.com' };
    const wrapped = key();
    expect((await store.send('POST', customers, { customer: anna }, wrapped)).status).toBe(201);
    for (const body of [
      anna,
      { customer: anna, last_name: 'Berg' },
      { customer: anna, card_id: null },
      { customer: { customer: anna } },
      { customer: [anna] },
      { customer: null },
    ]) {
      const refused = await store.send('POST', customers, body, wrapped);
      expectRefused(refused, 'idempotency_key', 'idempotency_key_reused');
    }
  });

  it('RETRY-06 While the first request is in progress, repeating it is 409 `idempotency_in_progress` with `Retry-After: 1`', async () => {
    const receiver = await Receiver.start();
    try {
      const { body } = await store.post<WebhookSubscriptionSecretJson>(
        `${store.store}/webhook_subscriptions`,
        { event: '*', target_url: receiver.url },
      );
      const path = `${store.store}/webhook_subscriptions/${body.id}/test`;
      let finish: () => void = () => undefined;
      const releaseSignal = new Promise<void>((resolve) => (finish = resolve));
      receiver.reply = async () => {
        await releaseSignal;
        return { status: 200 };
      };
      const once = key();
      const first = store.send('POST', path, undefined, once);
      await eventually(
        () => receiver.received.length,
        (count) => count === 1,
      );
      const again = await store.send('POST', path, undefined, once);
      expectFailure(again, 409, 'idempotency_in_progress');
      expect(again.headers.get('retry-after')).toBe('1');
      finish();
      expect((await first).status).toBe(200);
      expect(isRepeated(await store.send('POST', path, undefined, once))).toBe(true);
    } finally {
      await receiver.stop();
    }
  });

  it('RETRY-07 An `Idempotency-Key` has 1 to 255 printable ASCII characters; any other is 422 `idempotency_key`', async () => {
    const { path } = await enrol(store);
    for (const unfit of ['', '""', 'ä', 'x'.repeat(256), 'a\tb']) {
      expectRefused(await stamp(path, key(unfit)), 'idempotency_key');
    }
    expect(await store.readBalance(path)).toBe(0);
    for (const fit of ['x'.repeat(255), '!', '~a b"c~']) {
      expect((await stamp(path, key(fit))).status).toBe(200);
    }
  });

  it('RETRY-08 One pair of double quotes around an `Idempotency-Key` is not part of it', async () => {
    const { path } = await enrol(store);
    await stamp(path, key('"quoted"'));
    expect(isRepeated(await stamp(path, key('quoted')))).toBe(true);
    expect(isRepeated(await stamp(path, key('""quoted""')))).toBe(false);
  });

  it('RETRY-09 A used `Idempotency-Key` with another token is another request', async () => {
    const { path } = await enrol(store);
    const { token } = await service.running.execute(
      new CreateToken(cli, store.email, 'second till'),
    );
    const once = key();
    await stamp(path, once);
    expect(isRepeated(await stamp(path, once, { stamps: 1 }, store.as(token)))).toBe(false);
    expect(await store.readBalance(path)).toBe(2);
  });

  it('RETRY-10 A used `Idempotency-Key` on another path is another request', async () => {
    const [one, other] = [await enrol(store), await enrol(store)];
    const once = key();
    await stamp(one.path, once);
    expect(isRepeated(await stamp(other.path, once))).toBe(false);
    expect(await store.readBalance(other.path)).toBe(1);
  });

  it('RETRY-11 A used `Idempotency-Key` with another query is another request', async () => {
    const { path } = await enrol(store);
    const once = key();
    await stamp(path, once);
    const otherResponse = await store.send('POST', `${path}/stamp?till=2`, { stamps: 1 }, once);
    expect([isRepeated(otherResponse), await store.readBalance(path)]).toEqual([false, 2]);
  });

  it('RETRY-12 A used `Idempotency-Key` with another method is another request', async () => {
    const { rewards } = await enrol(store, { rewards: [5] });
    const path = `${store.store}/rewards/${rewards[0]?.id}`;
    const once = key();
    await store.send('PATCH', path, { reward: { name: 'Cake' } }, once);
    expect((await store.send('DELETE', path, undefined, once)).status).toBe(204);
  });

  it('RETRY-13 PATCH and DELETE are replayed like POST, including the 204 of a DELETE', async () => {
    const { rewards } = await enrol(store, { rewards: [5] });
    const path = `${store.store}/rewards/${rewards[0]?.id}`;
    const [change, end] = [key(), key()];
    const body = { reward: { name: 'Cake' } };
    const changed = await store.send<RewardJson>('PATCH', path, body, change);
    await store.patch(path, { reward: { name: 'Tea' } });
    const changedAgain = await store.send<RewardJson>('PATCH', path, body, change);
    expect([isRepeated(changedAgain), changedAgain.text]).toEqual([true, changed.text]);
    expect((await store.get<RewardJson>(path)).body.name).toBe('Tea');
    const none = { reward: { name: 'Tea' } };
    const nothing = key();
    await store.send('PATCH', path, none, nothing);
    expect(isRepeated(await store.send('PATCH', path, none, nothing))).toBe(true);
    await store.send('DELETE', path, undefined, end);
    const gone = await store.send('DELETE', path, undefined, end);
    expect([gone.status, isRepeated(gone)]).toEqual([204, true]);
  });

  it('RETRY-14 The 422 of a rule, such as too few stamps, is replayed even after its cause is gone', async () => {
    const { path, rewards } = await enrol(store, { rewards: [5] });
    const body = { reward_id: rewards[0]?.id };
    const once = key();
    const refused = await store.send('POST', `${path}/redeem`, body, once);
    expectRefused(refused, 'base', 'insufficient_stamps');
    await stamp(path, {}, { stamps: 5 });
    const again = await store.send('POST', `${path}/redeem`, body, once);
    expect([again.status, again.text, isRepeated(again)]).toEqual([422, refused.text, true]);
  });

  it('RETRY-15 The 422 of a value that is taken is replayed even after the value is free again', async () => {
    const customer = { first_name: 'Ada', email: `${randomUUID()}@example.com` };
    const path = `${store.store}/customers`;
    await store.post(path, { customer });
    const once = key();
    expectRefused(await store.send('POST', path, { customer }, once), 'email', 'taken');
    const again = await store.send('POST', path, { customer }, once);
    expectRefused(again, 'email', 'taken');
    expect(isRepeated(again)).toBe(true);
  });

  it('RETRY-16 The 422 of invalid fields is not stored: the corrected body may use the same key', async () => {
    const { path } = await enrol(store);
    const once = key();
    expectRefused(await stamp(path, once, { stamps: 'many' }), 'stamps');
    const corrected = await stamp(path, once, { stamps: 2 });
    expect([corrected.status, isRepeated(corrected)]).toEqual([200, false]);
  });

  it('RETRY-17 A 404 is not stored to be replayed', async () => {
    const path = `${store.store}/rewards`;
    const once = key();
    const body = { reward: { card_id: 999_999_999, name: 'Cake', stamps_required: 3 } };
    expectFailure(await store.send('POST', path, body, once), 404, 'not_found');
    const again = await store.send('POST', path, body, once);
    expect([again.status, isRepeated(again)]).toEqual([404, false]);
  });

  it('RETRY-18 401 and 429 are not stored to be replayed', async () => {
    const { path } = await enrol(store);
    const once = key();
    expectFailure(
      await stamp(path, once, { stamps: 1 }, store.as('ink_none')),
      401,
      'unauthorized',
    );
    const { token, tokenId } = await service.running.execute(
      new CreateToken(cli, store.email, 'slow till'),
    );
    await service.running.execute(new LimitToken(cli, tokenId, 1));
    const limited = store.as(token);
    await limited.get(path);
    expectFailure(await stamp(path, once, { stamps: 1 }, limited), 429, 'rate_limited');
    await service.running.execute(new LimitToken(cli, tokenId, 10));
    const after = await eventually(
      () => stamp(path, once, { stamps: 1 }, limited),
      ({ status }) => status !== 429,
    );
    expect([after.status, isRepeated(after)]).toEqual([200, false]);
  });

  it('RETRY-19 400, 413 and 415 are not stored to be replayed', async () => {
    const { path } = await enrol(store);
    const once = key();
    expect((await stamp(path, once, '{"stamps":')).status).toBe(400);
    expect((await stamp(path, once, `"${'x'.repeat(1_100_000)}"`)).status).toBe(413);
    const xml = { ...once, 'content-type': 'application/xml' };
    expect((await stamp(path, xml, '<stamps/>')).status).toBe(415);
    const after = await stamp(path, once);
    expect([after.status, isRepeated(after)]).toEqual([200, false]);
  });

  it('RETRY-20 Many simultaneous requests with the same `Idempotency-Key` are executed once', async () => {
    const { path } = await enrol(store);
    const once = key();
    const responses = await Promise.all(Array.from({ length: 20 }, () => stamp(path, once)));
    expect(responses.every(({ status }) => status === 200 || status === 409)).toBe(true);
    expect(
      responses.filter((response) => response.status === 200 && !isRepeated(response)),
    ).toHaveLength(1);
    expect(await store.readBalance(path)).toBe(1);
  });

  it('RETRY-21 A stored response that contains a secret is stored encrypted', async () => {
    const once = key();
    const { body } = await store.send<WebhookSubscriptionSecretJson>(
      'POST',
      `${store.store}/webhook_subscriptions`,
      { event: '*', target_url: 'https://receiver.example/hooks' },
      once,
    );
    const storedRows = await sql<{ stored: string }>(
      `select encode(response, 'escape') || encode(request_hash, 'escape') as stored
       from es.stored_responses where response is not null`,
    );
    expect(storedRows.length).toBeGreaterThan(0);
    for (const row of storedRows) {
      expect(row.stored).not.toContain(body.secret);
      expect(row.stored).not.toContain('target_url');
    }
  });

  it('RETRY-22 After 24 hours a used `Idempotency-Key` is a new request', async () => {
    const { path } = await enrol(store);
    const once = key();
    await stamp(path, once);
    const [row] = await sql<{ hours: number }>(
      `select extract(epoch from max(expires_at) - now())::float8 / 3600 as hours from es.stored_responses`,
    );
    expect(row?.hours).toBeGreaterThan(23.9);
    expect(row?.hours).toBeLessThanOrEqual(24);
    await sql(`update es.stored_responses set expires_at = now()`);
    expect(isRepeated(await stamp(path, once))).toBe(false);
    expect(await store.readBalance(path)).toBe(2);
  });

  it('RETRY-23 If a process is killed between the write and storing the response, a repetition does not count twice', async () => {
    const { path } = await enrol(store);
    const port = String(await findFreePort());
    const environment = createTestEnvironment(service.running.database.url, {
      ...service.running.environment,
      PORT: port,
    });
    const otherClient = new Client(`http://127.0.0.1:${port}`, store.accountId, store.token);
    const once = key();
    let api = startProgram('dist/apps/api/main.js', environment);
    try {
      const readStatus = () =>
        otherClient.get('/api/v1/status').then(
          ({ status }) => status,
          () => 0,
        );
      await eventually(readStatus, (status) => status === 200);
      const lost = stamp(path, once, { stamps: 1 }, otherClient).catch(() => 'no response');
      await eventually(
        () => store.readBalance(path),
        (count) => count === 1,
      );
      await api.kill('SIGKILL');
      await lost;
      api = startProgram('dist/apps/api/main.js', environment);
      await eventually(readStatus, (status) => status === 200);
      const again = await eventually(
        () => stamp(path, once, { stamps: 1 }, otherClient),
        ({ status }) => status !== 409,
      );
      expect([again.status, again.body.stamps_count, isRepeated(again)]).toEqual([200, 1, true]);
      expect(await store.readBalance(path)).toBe(1);
    } finally {
      await api.kill('SIGTERM');
    }
  });

  it('RETRY-24 An `Idempotency-Key` has no effect on a GET', async () => {
    const { path } = await enrol(store);
    const once = key();
    const first = await store.send<CustomerCardDetailJson>('GET', path, undefined, once);
    await stamp(path, once);
    const after = await store.send<CustomerCardDetailJson>('GET', path, undefined, once);
    expect([first.body.stamps_count, after.body.stamps_count]).toEqual([0, 1]);
    expect(isRepeated(after)).toBe(false);
    expect((await store.send('GET', path, undefined, key(''))).status).toBe(200);
  });

  it('RETRY-25 A replayed response carries the request id and rate-limit headers of its own request', async () => {
    const { path } = await enrol(store);
    const once = key();
    const first = await stamp(path, { ...once, 'x-request-id': 'first' });
    const again = await stamp(path, { ...once, 'x-request-id': 'again' });
    expect(isRepeated(again)).toBe(true);
    expect(again.headers.get('x-request-id')).toBe('again');
    const remaining = ({ headers }: ApiResponse<unknown>) =>
      Number(headers.get('ratelimit-remaining'));
    expect(remaining(again)).toBeLessThan(remaining(first));
  });

  it('RETRY-26 A 422 that is to be replayed, but could not be stored, is 503 instead: nothing was done', async () => {
    const { path, rewards } = await enrol(store, { rewards: [5] });
    const { query } = service.running.database;
    const once = key();
    const redeem = () => store.send('POST', `${path}/redeem`, { reward_id: rewards[0]?.id }, once);
    // The rejection cannot be stored, as when the database dies after the request was judged.
    await query(`create function is_lost() returns trigger language plpgsql as $$
      begin raise exception 'lost' using errcode = 'lock_not_available'; end $$`);
    await query(`create trigger is_lost before update on es.stored_responses
      for each row execute function is_lost()`);
    const unsettled = await redeem();
    await query('drop trigger is_lost on es.stored_responses');
    expectFailure(unsettled, 503, 'unavailable');
    const refused = await redeem();
    expectFailure(refused, 422, 'insufficient_stamps');
    expect(isRepeated(refused)).toBe(false);
    const again = await redeem();
    expect(again.body).toEqual(refused.body);
    expect(isRepeated(again)).toBe(true);
  });
});
