import { describe, expect, it } from '@jest/globals';
import { request } from 'node:http';
import pg from 'pg';
import type { HistoryEntryJson } from '#loyalty/history/history-entry.dto.js';
import type { BatchResultsJson } from '#loyalty/stamping/batch.dto.js';
import type { CustomerCardDetailJson } from '#loyalty/stamping/customer-card.dto.js';
import { CreateToken, LimitToken } from '#identity/token.commands.js';
import { StoppableServer } from '../support/database/stoppable-postgres.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import {
  expectFailure,
  expectRefused,
  useService,
  type Failure,
} from '../support/http/contract.js';
import { eventually } from '../support/jest/eventually.js';
import { sentSoFar, useSentEvents } from '../support/services/sent-events.js';
import { cli, type ApiResponse } from '../support/services/service.js';

const service = useService({ WEBHOOK_ALLOW_INSECURE_TARGETS: 'true' });
const breaking = useService();
const few = useService({ RATE_LIMIT_PER_MINUTE: '10', STORE_RATE_LIMIT_PER_MINUTE: '50' });
const store = service.useStore();
const sent = useSentEvents(service);

type Results = { status: number; body: unknown }[];
type Enrolled = Awaited<ReturnType<typeof enrol>>;

let receipts = 0;
const nextReceipt = () => `batch-${receipts++}`;
const stampOn = ({ customerCard }: Enrolled, stamps: unknown = 1, more: object = {}) => ({
  operation: 'stamp',
  customer_card_id: customerCard.id,
  stamps,
  external_ref: nextReceipt(),
  ...more,
});
const redeemOn = ({ customerCard, rewards }: Enrolled, more: object = {}) => ({
  operation: 'redeem',
  customer_card_id: customerCard.id,
  reward_id: rewards[0]?.id,
  external_ref: nextReceipt(),
  ...more,
});
const post = (operations: unknown, client = store, headers: Record<string, string> = {}) =>
  client.send<BatchResultsJson>('POST', `${client.store}/batch`, { operations }, headers);

async function execute(operations: unknown[], client = store): Promise<Results> {
  const { status, body, text } = await post(operations, client);
  if (status !== 200) throw new Error(text);
  return body.results;
}

const statuses = (results: Results) => results.map(({ status }) => status);
const counts = (results: Results) =>
  results.map(({ body }) => (body as CustomerCardDetailJson).stamps_count);
const codes = (results: Results) =>
  results.map(({ status, body }) => (status === 200 ? undefined : (body as Failure).code));
const toFailure = (result: Results[number] | undefined) => (result?.body ?? {}) as Failure;
/** A result as the response that it stands for. */
const toResponse = (result: Results[number] | undefined) => ({
  status: result?.status ?? 0,
  body: result?.body,
  headers: new Headers(),
  text: '',
});
const balance = ({ path }: Enrolled, client = store) => client.readBalance(path);

describe('a batch', () => {
  it('BATCH-01 A batch returns 200 with `results`, one `{status, body}` for each operation, in order', async () => {
    const one = await enrol(store, { rewards: [2] });
    const other = await enrol(store);
    const { status, body } = await post([
      stampOn(one, 3),
      stampOn(other, 1, { customer_card_id: null, code: other.customerCard.code.toLowerCase() }),
      redeemOn(one),
      redeemOn(one),
    ]);
    expect([status, Object.keys(body)]).toEqual([200, ['results']]);
    const [stamped, byCode, redeemed, refused] = body.results;
    expect(body.results.map((result) => Object.keys(result))).toEqual(
      Array.from({ length: 4 }, () => ['status', 'body']),
    );
    expect(statuses(body.results)).toEqual([200, 200, 200, 422]);
    expect(stamped?.body).toMatchObject({ id: one.customerCard.id, stamps_count: 3 });
    expect(Object.keys(stamped?.body ?? {}).sort()).toEqual(
      [...Object.keys(one.customerCard), 'event_id'].sort(),
    );
    const event_id: unknown = expect.stringMatching(/^evt_/);
    const { body: card } = await store.get<CustomerCardDetailJson>(other.path);
    expect(byCode?.body).toEqual({ ...card, event_id });
    expect(redeemed?.body).toMatchObject({
      redemption: { stamps_spent: 2, stamps_remaining: 1 },
      event_id,
    });
    expectRefused(toResponse(refused), 'base', 'insufficient_stamps');
    const { headers, body: single } = await store.post<Failure>(`${one.path}/redeem`, {
      reward_id: one.rewards[0]?.id,
    });
    expect(refused?.body).toEqual({
      ...single,
      request_id: toFailure(refused).request_id,
    });
    expect(headers.get('x-request-id')).not.toBe(toFailure(refused).request_id);
  });

  it('BATCH-02 Each operation of a batch is decided and committed by itself, by the rules of a stamping or redemption', async () => {
    const limited = await enrol(store, { card: { max_stamps_per_request: 2 } });
    const expired = await enrol(store);
    await store.patch(`${store.store}/cards/${expired.card.id}`, {
      card: { expires_at: '2020-01-01T00:00:00Z' },
    });
    const otherHolder = await enrol(store, { rewards: [1] });
    const results = await execute([
      stampOn(limited, 3),
      stampOn(limited, 2),
      stampOn(expired),
      redeemOn(otherHolder),
      stampOn(otherHolder, 1, { location_id: 999999 }),
      stampOn(otherHolder, 1, { occurred_at: '2020-01-01T00:00:00Z' }),
      redeemOn(otherHolder, { reward_id: 999999 }),
      stampOn(otherHolder, 2, { staff_ref: 'Ben', note: 'oat milk', source: 'pos' }),
    ]);
    expect(statuses(results)).toEqual([422, 200, 422, 422, 422, 422, 404, 200]);
    expect(codes(results).slice(0, 4)).toEqual([
      'stamp_limit_reached',
      undefined,
      'card_expired',
      'insufficient_stamps',
    ]);
    expectRefused(toResponse(results[4]), 'location_id');
    expectRefused(toResponse(results[5]), 'occurred_at');
    expect(await Promise.all([balance(limited), balance(otherHolder)])).toEqual([2, 2]);
    const { body: entries } = await store.get<HistoryEntryJson[]>(
      `${otherHolder.path}/events?limit=2`,
    );
    const details = { channel: 'pos', staff_ref: 'Ben', note: 'oat milk' };
    expect(entries[1]).toMatchObject({ type: 'stamp.earned', ...details });
  });

  it('BATCH-03 An operation that is not an object, or has an invalid field, has a 422 result that names the fields', async () => {
    const holder = await enrol(store, { rewards: [1] });
    const card = holder.customerCard.code;
    const cases: [unknown, string[]][] = [
      [null, ['base']],
      ['stamp', ['base']],
      [[], ['base']],
      [{}, ['customer_card_id', 'operation', 'external_ref']],
      [stampOn(holder, 0), ['stamps']],
      [stampOn(holder, 101), ['stamps']],
      [stampOn(holder, 'many'), ['stamps']],
      [stampOn(holder, null), ['stamps']],
      [stampOn(holder, 1, { operation: 'adjust' }), ['operation']],
      [stampOn(holder, 1, { external_ref: null }), ['external_ref']],
      [stampOn(holder, 1, { external_ref: ' ' }), ['external_ref']],
      [stampOn(holder, 1, { external_ref: 'r'.repeat(256) }), ['external_ref']],
      [stampOn(holder, 1, { customer_card_id: null }), ['customer_card_id']],
      [stampOn(holder, 1, { code: card }), ['customer_card_id']],
      [stampOn(holder, 1, { customer_card_id: 'x' }), ['customer_card_id']],
      [stampOn(holder, 1, { note: 'n'.repeat(501), source: 'web' }), ['note', 'source']],
      [redeemOn(holder, { reward_id: null }), ['reward_id']],
      [redeemOn(holder, { reward_id: '' }), ['reward_id']],
    ];
    const results = await execute([...cases.map(([operation]) => operation), stampOn(holder)]);
    for (const [i, [operation, fields]] of cases.entries()) {
      const { errors } = toFailure(results[i]);
      expect([operation, results[i]?.status, Object.keys(errors ?? {}).sort()]).toEqual([
        operation,
        422,
        fields.toSorted(),
      ]);
    }
    expect(results.at(-1)?.status).toBe(200);
    expect(await balance(holder)).toBe(1);
  });

  it('BATCH-04 An unknown customer card, or one of another store, has a 404 result, by `customer_card_id` and by `code`', async () => {
    const stranger = await enrol(await service.newStore());
    const holder = await enrol(store);
    const byCode = (code: string) => stampOn(holder, 1, { customer_card_id: null, code });
    const results = await execute([
      stampOn(holder, 1, { customer_card_id: 999999 }),
      stampOn(stranger),
      byCode('22222222'),
      byCode(stranger.customerCard.code),
      byCode("'"),
      stampOn(holder),
    ]);
    expect(statuses(results)).toEqual([404, 404, 404, 404, 404, 200]);
    for (const result of results.slice(0, 5)) {
      expectFailure(toResponse(result), 404, 'not_found');
    }
    expect(toFailure(results[0]).error).toBe('Customer card not found');
  });

  it('BATCH-05 `operations` that is missing, not a list, empty or longer than 100 is 422 `operations`, and nothing is executed', async () => {
    const holder = await enrol(store);
    const tooMany = Array.from({ length: 101 }, () => stampOn(holder));
    for (const operations of [undefined, null, {}, 'all', 7, [], tooMany]) {
      expectRefused(await post(operations), 'operations');
    }
    expectRefused(await store.post(`${store.store}/batch`), 'operations');
    expectRefused(await store.post(`${store.store}/batch`, []), 'base');
    expect(await balance(holder)).toBe(0);
    const all = await execute(tooMany.slice(1));
    expect(counts(all)).toEqual(Array.from({ length: 100 }, (_, i) => i + 1));
  });

  it('BATCH-06 Operations on one customer card are executed in their order', async () => {
    const cards = await Promise.all(
      Array.from({ length: 5 }, () => enrol(store, { rewards: [2], card: { initial_stamps: 1 } })),
    );
    const rounds = [stampOn, redeemOn, stampOn, stampOn, redeemOn];
    const results = await execute(rounds.flatMap((next) => cards.map((card) => next(card))));
    expect(statuses(results)).toEqual(results.map(() => 200));
    const [first] = cards;
    if (!first) throw new Error('there is no card');
    const { code, id } = first.customerCard;
    const mixed = await execute(
      Array.from({ length: 20 }, (_, i) =>
        stampOn(
          first,
          1,
          i % 2 === 0 ? { customer_card_id: null, code } : { customer_card_id: id },
        ),
      ),
    );
    expect(counts(mixed)).toEqual(mixed.map((_, i) => i + 1));
  });

  it('BATCH-07 An `external_ref` that comes twice in a batch counts once, as in two requests', async () => {
    const one = await enrol(store, { rewards: [1] });
    const other = await enrol(store);
    const first = stampOn(one, 2);
    const results = await execute([
      first,
      first,
      { ...first, stamps: 3 },
      { ...first, customer_card_id: other.customerCard.id },
      redeemOn(one, { external_ref: first.external_ref }),
      redeemOn(one, { external_ref: first.external_ref }),
    ]);
    expect(statuses(results)).toEqual([200, 200, 422, 422, 200, 200]);
    expect(results[1]?.body).toEqual(results[0]?.body);
    expect(results[5]?.body).toEqual(results[4]?.body);
    for (const result of results.slice(2, 4)) {
      expectRefused(toResponse(result), 'external_ref', 'taken');
    }
    expect(await Promise.all([balance(one), balance(other)])).toEqual([1, 0]);
  });

  it('BATCH-08 A batch that is sent again adds nothing, and gets the first results', async () => {
    const cards = await Promise.all(Array.from({ length: 4 }, () => enrol(store)));
    const operations = cards.flatMap((card) => [stampOn(card), stampOn(card, 2)]);
    const half = await execute(operations.slice(0, 4));
    const whole = await execute(operations);
    expect(whole.slice(0, 4)).toEqual(half);
    expect((await execute(operations)).map(({ body }) => body)).toEqual(
      whole.map(({ body }) => body),
    );
    expect(await Promise.all(cards.map((card) => balance(card)))).toEqual([3, 3, 3, 3]);

    const [unlockedCard, lockedCard] = [await enrol(store), await enrol(store)];
    const many = [...Array.from({ length: 99 }, () => stampOn(unlockedCard)), stampOn(lockedCard)];
    const holder = new pg.Client({ connectionString: service.running.database.url });
    await holder.connect();
    await holder.query('begin');
    await holder.query('select from customer_cards where id = $1 for update', [
      lockedCard.customerCard.id,
    ]);
    const cut = request(`${store.baseUrl}${store.store}/batch`, {
      method: 'POST',
      headers: { authorization: `Bearer ${store.token}`, 'content-type': 'application/json' },
    });
    cut.on('error', () => undefined);
    cut.end(JSON.stringify({ operations: many }));
    await eventually(
      () => balance(unlockedCard),
      (count) => count > 0,
    );
    cut.destroy();
    await holder.query('rollback');
    await holder.end();
    // A busy machine may take longer for all than a batch may (BATCH-15).
    const executeAll = () =>
      eventually(
        () => execute(many),
        (results) => !statuses(results).includes(503),
      );
    const together = await Promise.all([executeAll(), executeAll()]);
    const expected = [...Array.from({ length: 99 }, (_, i) => i + 1), 1];
    for (const results of together) expect(counts(results)).toEqual(expected);
    expect([await balance(unlockedCard), await balance(lockedCard)]).toEqual([99, 1]);
  });

  it('BATCH-09 A batch counts towards the limits as one request for every ten operations, rounded up', async () => {
    const own = await service.newStore();
    const holder = await enrol(own);
    const list = (count: number) => Array.from({ length: count }, () => stampOn(holder));
    const readLeft = ({ headers }: ApiResponse) => Number(headers.get('ratelimit-remaining'));
    let left = readLeft(await own.get(own.store));
    const count = async (response: Promise<ApiResponse>) => {
      const { headers } = await response;
      const hits = left - Number(headers.get('ratelimit-remaining'));
      left -= hits;
      return hits;
    };
    for (const [operations, expected] of [
      [1, 1],
      [10, 1],
      [11, 2],
      [100, 10],
      [101, 1],
      [0, 1],
    ] as const) {
      expect(await count(post(list(operations), own))).toBe(expected);
    }
    const operations = list(21);
    const dryRun = own.post(`${own.store}/batch?dry_run=true`, { operations });
    expect(await count(dryRun)).toBe(3);
    const key = { 'idempotency-key': 'counted-again' };
    for (let i = 0; i < 2; i++) expect(await count(post(operations, own, key))).toBe(3);
    for (const body of [null, [], { operations: 'ten' }]) {
      expect(await count(own.post(`${own.store}/batch`, body))).toBe(1);
    }
  });

  it('BATCH-19 A batch that exceeds what is left of a limit is 429, executes nothing and counts as one request', async () => {
    const own = await few.newStore();
    const holder = await enrol(own);
    const operations = Array.from({ length: 100 }, () => stampOn(holder, 1, { colour: 'red' }));
    const token = await few.running.execute(new CreateToken(cli, own.email, 'till'));
    const till = own.as(token.token);
    const key = { 'idempotency-key': 'too-much' };
    await post(operations.slice(0, 1), till);
    const refused = await post(operations, till, key);
    expectFailure(refused, 429, 'rate_limited');
    expect(refused.headers.get('ratelimit-remaining')).toBe('8');
    expect(refused.headers.get('x-unknown-parameters')).toMatch(/^operations\.0\.colour, /);
    expect(refused.headers.get('ratelimit-policy')).toBe('10;w=60');
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
    expect(await balance(holder, own)).toBe(1);
    // What is left can still be used, with the key too: nothing was stored under it.
    const { status, headers } = await post(operations.slice(0, 80), till, key);
    expect([status, headers.get('ratelimit-remaining')]).toEqual([200, '0']);
    expect(await balance(holder, own)).toBe(80);
  });

  it('BATCH-20 A limit below what a batch counts allows one in a window of its own', async () => {
    const own = await few.newStore();
    const holder = await enrol(own);
    const { tokenId, token } = await few.running.execute(
      new CreateToken(cli, own.email, 'slow till'),
    );
    await few.running.execute(new LimitToken(cli, tokenId, 5));
    const till = own.as(token);
    const operations = Array.from({ length: 100 }, () => stampOn(holder));
    const { status, headers } = await post(operations, till);
    expect([status, headers.get('ratelimit-remaining')]).toEqual([200, '0']);
    expectFailure(await post(operations, till), 429, 'rate_limited');
  });

  it('BATCH-21 The limit of the store counts a batch in the same way, across tokens', async () => {
    const own = await few.newStore();
    const holder = await enrol(own);
    const send = async (operations: object[]) => {
      const { token } = await few.running.execute(new CreateToken(cli, own.email, nextReceipt()));
      return post(operations, own.as(token));
    };
    const many = Array.from({ length: 100 }, () => stampOn(holder));
    const responses = [];
    for (let i = 0; i < 6; i++) responses.push(await send(many));
    const policies = responses.map(({ status, headers }) => [
      status,
      headers.get('ratelimit-policy'),
    ]);
    for (const policy of policies.slice(0, 4)) expect(policy).toEqual([200, '10;w=60']);
    expect(policies.at(-1)).toEqual([429, '50;w=60']);
  });

  it('BATCH-10 A batch sends the same webhooks as single requests, and its entries in the history have its request id', async () => {
    const own = await service.newStore();
    const holder = await enrol(own, { rewards: [2] });
    const receiver = await sent.subscribe(own);
    const request_id = 'batch-of-the-evening';
    await post([stampOn(holder, 2), redeemOn(holder)], own, { 'x-request-id': request_id });
    const types = (await sentSoFar(own, holder.path, receiver)).map(({ type }) => type);
    expect(types).toEqual(['stamp.earned', 'reward.unlocked', 'reward.redeemed']);
    const { body } = await own.get<HistoryEntryJson[]>(`${holder.path}/events?limit=4`);
    expect(body.slice(1).map((entry) => [entry.type, entry.request_id, entry.actor.type])).toEqual(
      types.toReversed().map((type) => [type, request_id, 'token']),
    );
  });

  it('BATCH-11 With `dry_run=true` in the query a batch stores nothing, and the response has the header `X-Dry-Run: true`', async () => {
    const holder = await enrol(store, { rewards: [2] });
    const operations = [stampOn(holder, 2), redeemOn(holder), stampOn(holder, 2)];
    const dry = await store.post<BatchResultsJson>(`${store.store}/batch?dry_run=true`, {
      operations,
    });
    expect([dry.status, dry.headers.get('x-dry-run')]).toEqual([200, 'true']);
    expect(statuses(dry.body.results)).toEqual([200, 422, 200]);
    expect(counts(dry.body.results)).toEqual([2, undefined, 2]);
    expect(await balance(holder)).toBe(0);
    const invalid = await store.post(`${store.store}/batch?dry_run=perhaps`, { operations });
    expectRefused(invalid, 'dry_run');
    const real = await post(operations);
    expect(real.headers.get('x-dry-run')).toBeNull();
    expect(statuses(real.body.results)).toEqual([200, 200, 200]);
  });

  it('BATCH-12 A batch that is repeated with its `Idempotency-Key` gets the first response', async () => {
    const one = await enrol(store, { rewards: [3] });
    const key = { 'idempotency-key': `batch-${one.customerCard.id}` };
    const operations = [stampOn(one, 2), redeemOn(one)];
    const first = await post(operations, store, key);
    expect(statuses(first.body.results)).toEqual([200, 422]);
    await execute([stampOn(one, 5)]);
    const again = await post(operations, store, key);
    expect([again.status, again.body]).toEqual([200, first.body]);
    expect([first, again].map(({ headers }) => headers.get('idempotent-replayed'))).toEqual([
      null,
      'true',
    ]);
    const other = [...operations, stampOn(one)];
    expectRefused(await post(other, store, key), 'idempotency_key', 'idempotency_key_reused');

    const mixed = [stampOn(one), stampOn(one, 1, { customer_card_id: 999999 }), stampOn(one, 'x')];
    const mixedKey = { 'idempotency-key': `mixed-${one.customerCard.id}` };
    const results = (await post(mixed, store, mixedKey)).body.results;
    expect(statuses(results)).toEqual([200, 404, 422]);
    const mixedAgain = await post(mixed, store, mixedKey);
    expect(mixedAgain.body.results).toEqual(results);
    expect(mixedAgain.headers.get('idempotent-replayed')).toBe('true');
    expect(await balance(one)).toBe(8);

    const together = await Promise.all(
      Array.from({ length: 5 }, () =>
        post([stampOn(one, 1, { external_ref: 'together' })], store, {
          'idempotency-key': `together-${one.customerCard.id}`,
        }),
      ),
    );
    expect(new Set(together.map(({ status }) => status))).toEqual(
      new Set(together.some(({ status }) => status === 409) ? [200, 409] : [200]),
    );
    expect(await balance(one)).toBe(9);
  });

  it('BATCH-13 The stored response of a batch is gone when one of its customers is erased: the repetition is 422 `base`, code `customer_erased`', async () => {
    const one = await enrol(store);
    const other = await enrol(store);
    const key = { 'idempotency-key': `erased-${one.customerCard.id}` };
    const operations = [stampOn(one), stampOn(other), stampOn(one)];
    const first = await post(operations, store, key);
    expect((await post(operations, store, key)).body).toEqual(first.body);
    await store.post(`${store.store}/customers/${other.customer.id}/erase`);
    expectRefused(await post(operations, store, key), 'base', 'customer_erased');
    const results = await execute([...operations, stampOn(other)]);
    expect(statuses(results)).toEqual([200, 200, 200, 422]);
    expect(codes(results)[3]).toBe('customer_erased');
    expect(await balance(one)).toBe(2);
  });

  it('BATCH-14 An operation that cannot be executed now, because the database fails, has a 503 result, and nothing of it was written', async () => {
    const own = await breaking.newStore();
    const cards = await Promise.all(Array.from({ length: 6 }, () => enrol(own)));
    const failing = cards[2]?.customerCard.id;
    const { query } = breaking.running.database;
    await query(`create function fail() returns trigger language plpgsql as $$
      begin
        if new.stream_id = 'customer_card-${failing}' then
          raise exception 'could not extend file' using errcode = 'disk_full';
        end if;
        return new;
      end $$`);
    await query(
      'create trigger failing before insert on es.events for each row execute function fail()',
    );
    const key = { 'idempotency-key': 'failing' };
    const operations = cards.flatMap((card) => [stampOn(card), stampOn(card)]);
    const { body } = await post(operations, own, key);
    // Others that were to be committed together with it may have failed as well.
    const failed = body.results.filter(({ status }) => status !== 200);
    for (const result of failed) expectFailure(toResponse(result), 503, 'unavailable');
    expect(statuses(body.results.slice(4, 6))).toEqual([503, 503]);
    await query('drop function fail cascade');
    const written = cards.map(
      (_, i) => body.results.slice(2 * i, 2 * i + 2).filter(({ status }) => status === 200).length,
    );
    expect(await Promise.all(cards.map((card) => balance(card, own)))).toEqual(written);
    const again = await post(operations, own, key);
    expect(statuses(again.body.results)).toEqual(operations.map(() => 200));
    expect(await Promise.all(cards.map((card) => balance(card, own)))).toEqual([2, 2, 2, 2, 2, 2]);
  });

  it('BATCH-15 While the database is silent, a batch is 503 within 8 s', async () => {
    const own = await breaking.newStore();
    const cards = await Promise.all(Array.from({ length: 4 }, () => enrol(own)));
    const operations = Array.from({ length: 100 }, (_, i) => stampOn(cards[i % 4] as Enrolled));
    const server = await StoppableServer.of(breaking.running.database);
    server.stop();
    try {
      expectFailure(await post(operations, own), 503, 'unavailable');
    } finally {
      server.goOn();
    }
    const results = await eventually(
      () => post(operations, own),
      ({ status }) => status === 200,
    );
    expect(statuses(results.body.results)).toEqual(operations.map(() => 200));
    expect(await Promise.all(cards.map((card) => balance(card, own)))).toEqual([25, 25, 25, 25]);
  });

  it('BATCH-16 Operations on a card that was merged into another one are executed on that one', async () => {
    const existing = await enrol(store, { rewards: [1] });
    const gone = await enrol(store);
    const { body: own } = await store.post<CustomerCardDetailJson>(
      `${store.store}/customers/${gone.customer.id}/customer_cards`,
      { card_id: existing.card.id },
    );
    const early = stampOn(existing, 2, { customer_card_id: own.id });
    await execute([early]);
    await store.post(`${store.store}/customers/${existing.customer.id}/merge`, {
      from_customer_id: gone.customer.id,
    });
    const results = await execute([
      early,
      stampOn(existing, 1, { customer_card_id: own.id }),
      stampOn(existing),
      stampOn(existing, 1, { customer_card_id: null, code: own.code }),
      stampOn(gone),
    ]);
    expect(statuses(results)).toEqual([200, 200, 200, 200, 200]);
    expect(counts(results)).toEqual([2, 3, 4, 5, 1]);
    expect(results[1]?.body).toMatchObject({ id: existing.customerCard.id });
    expect(results[4]?.body).toMatchObject({ customer_id: existing.customer.id });
  });

  it('BATCH-17 Unknown fields are named with the number of their operation, such as `operations.0.colour`', async () => {
    const holder = await enrol(store);
    const operations = [stampOn(holder, 1, { colour: 'red' }), stampOn(holder)];
    const { status, headers } = await post(operations);
    expect([status, headers.get('x-unknown-parameters')]).toEqual([200, 'operations.0.colour']);
    const strict = { prefer: 'handling=strict' };
    expectRefused(await post(operations, store, strict), 'operations');
    expect(await balance(holder)).toBe(2);
  });

  it("BATCH-18 A date in `occurred_at` means the start of that day in the store's time zone", async () => {
    const own = await service.newStore({ timeZone: 'Pacific/Auckland' });
    const holder = await enrol(own);
    const issuedAt = Date.parse(holder.customerCard.issued_at);
    const inAuckland = new Intl.DateTimeFormat('en-CA', { timeZone: 'Pacific/Auckland' });
    const today = inAuckland.format(issuedAt);
    const single = await own.post<Failure>(`${holder.path}/stamp`, {
      stamps: 1,
      occurred_at: today,
    });
    const results = await execute([stampOn(holder, 1, { occurred_at: today })], own);
    expect(results[0]?.status).toBe(single.status);
    expect(toFailure(results[0]).errors).toEqual(single.body.errors);
    expect(single.body.errors).toHaveProperty('occurred_at');
  });
});
