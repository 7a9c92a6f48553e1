import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { isDeepStrictEqual } from 'node:util';
import pg from 'pg';
import type { LocationJson } from '#loyalty/locations/location.dto.js';
import type { ReplayJson } from '#outbound/subscriptions/webhook-delivery.dto.js';
import { GeocoderEmulator } from '../support/emulators/geocoders/server.js';
import type { Receiver } from '../support/emulators/webhook-receiver.js';
import { enrol, type Enrolled } from '../support/fixtures/enrolled-customer.js';
import { testConfig } from '../support/database/database.js';
import { eventually } from '../support/jest/eventually.js';
import { samples } from '../support/services/metrics.js';
import { findFreePort } from '../support/services/program.js';
import { openHistory } from '../support/services/history.js';
import { startService, type Client, type LocalService } from '../support/services/service.js';
import {
  listReceivedBalances,
  subscribe,
  useWebhooks,
} from '../support/services/webhook-dispatcher.js';
import { CARD_LINKS } from '../support/database/card-links.js';

/** What each subscription of the dispatcher writes for the events of a store. */
const TABLES = {
  passes: 'passes',
  'card messages': 'outgoing_messages',
  geocoding: 'geocoding_queue',
  webhooks: 'webhook_events',
};
const SUBSCRIPTIONS = Object.keys(TABLES).sort();
const SLOW = 300_000;

let service: LocalService;
let geocoder: GeocoderEmulator;
const { receive, startDispatcher, queryRows } = useWebhooks(() => service);

beforeAll(async () => {
  geocoder = await GeocoderEmulator.start('nominatim', 4);
  service = await startService({
    ...geocoder.settings,
    WEBHOOK_ALLOW_INSECURE_TARGETS: 'true',
  });
  await service.database.query(`
    create table failing_stores (account_id bigint, relation text, code text);
    create function fail_for_store() returns trigger language plpgsql security definer as $$
    declare
      code text := (select f.code from public.failing_stores f
                    where f.account_id = new.account_id and f.relation = tg_argv[0]);
    begin
      if code = 'lock' then perform pg_advisory_xact_lock(4711);
      elsif code is not null then raise exception 'this store fails' using errcode = code; end if;
      return new;
    end $$`);
  await service.database.query(`
    create table postponements (account_id bigint, seq bigint, failures int, seconds float8);
    create function record_postponement() returns trigger language plpgsql security definer as $$
    begin
      if tg_op = 'INSERT' or new.failures <> old.failures then
        insert into public.postponements
        values (new.account_id, new.seq, new.failures, extract(epoch from new.retry_at - now()));
      end if;
      return new;
    end $$;
    create trigger record_postponement after insert or update on es.postponed_events
    for each row execute function record_postponement()`);
  for (const table of [...Object.values(TABLES), 'history']) {
    await service.database.query(
      `create trigger fail_for_store before insert or update on ${table}
       for each row execute function fail_for_store('${table}')`,
    );
  }
}, SLOW);
afterAll(async () => {
  await service.stop();
  await geocoder.stop();
}, SLOW);

/** A store with something for every subscription to do. */
class Shop {
  private acts = 0;
  private constructor(
    readonly store: Client,
    private readonly card: Enrolled,
    private readonly receiver: Receiver,
    private readonly subscriptionId: number,
  ) {}

  static async open(): Promise<Shop> {
    const store = await service.newStore();
    const card = await enrol(store);
    await (await fetch(service.baseUrl + card.page)).text();
    const receiver = await receive();
    const { id } = await subscribe(store, receiver);
    return new Shop(store, card, receiver, id);
  }

  /** Asks for all events again. @returns how many these are */
  async replay(): Promise<number> {
    const path = `${this.store.store}/webhook_subscriptions/${this.subscriptionId}/replay`;
    const { body } = await this.store.post<ReplayJson>(path, { from: '2026-01-01T00:00:00Z' });
    return body.matched;
  }

  /** Counts the webhooks that arrived, repeated ones included. */
  countRequests(): number {
    return this.receiver.received.length;
  }

  /** Causes one event for each subscription. */
  async act(): Promise<void> {
    const count = ++this.acts;
    await this.card.stamp(count);
    await enrol(this.store, { links: true });
    const address = `Marktplatz ${count}, store ${this.store.accountId}`;
    geocoder.places.set(address, { latitude: 53.55, longitude: 9.99, as: 'house' });
    const path = `${this.store.store}/locations`;
    await this.store.post<LocationJson>(path, { location: { name: 'Old Town', address } });
  }

  /** Reads how much each subscription has done. */
  async read() {
    const [row] = await queryRows<{ messages: number; places: number; stamps: number | null }>(
      `select
         (select count(*)::int from ${CARD_LINKS} where account_id = $1) as messages,
         (select count(*)::int from locations where account_id = $1 and state ->> 'geocodeStatus' = 'ok') as places,
         (select (notification ->> 'stamps')::int from passes where customer_card_id = $2) as stamps`,
      this.store.accountId,
      this.card.customerCard.id,
    );
    return { ...row, balances: listReceivedBalances(this.receiver) };
  }

  /** Waits until everything is done about what was caused so far. */
  async waitUntilDone(): Promise<void> {
    const balances = Array.from({ length: this.acts }, (_, i) => ((i + 1) * (i + 2)) / 2);
    const expected = { messages: this.acts, places: this.acts, stamps: this.acts, balances };
    await eventually(
      () => this.read(),
      (state) => isDeepStrictEqual(state, expected),
    );
  }

  async fail(code: string, tables = Object.values(TABLES)): Promise<void> {
    for (const table of tables) {
      await queryRows(
        'insert into failing_stores values ($1, $2, $3)',
        this.store.accountId,
        table,
        code,
      );
    }
  }

  async recover(): Promise<void> {
    await queryRows('delete from failing_stores where account_id = $1', this.store.accountId);
    await queryRows(
      'update es.postponed_events set retry_at = now() where account_id = $1',
      this.store.accountId,
    );
  }

  /** Lists the subscriptions for which events of the store wait. */
  async listWaiting(): Promise<string[]> {
    const rows = await queryRows<{ subscription: string }>(
      'select distinct subscription from es.postponed_events where account_id = $1 order by 1',
      this.store.accountId,
    );
    return rows.map(({ subscription }) => subscription);
  }
}

describe('a store whose events fail', () => {
  it.each([
    ['an error', 'P0001'],
    ['the time limit of statements', '57014'],
    ['the time limit of locks', '55P03'],
  ])(
    'does not hold up the others, and is made up for in order after a restart: %s',
    async (_, code) => {
      const [failing, otherStore, good] = [await Shop.open(), await Shop.open(), await Shop.open()];
      await failing.fail(code);
      await otherStore.fail(code);
      await failing.act();
      await otherStore.act();
      await good.act();
      const dispatcher = await startDispatcher();
      await good.waitUntilDone();
      await failing.act();
      await good.act();
      await good.waitUntilDone();
      for (const shop of [failing, otherStore]) {
        expect(await shop.read()).toEqual({ messages: 0, places: 0, stamps: null, balances: [] });
        expect(await shop.listWaiting()).toEqual(SUBSCRIPTIONS);
      }
      await eventually(dispatcher.output, (output) =>
        output.includes('its account are postponed, the other accounts go on'),
      );

      await dispatcher.kill('SIGKILL');
      await failing.act();
      await good.act();
      const next = await startDispatcher();
      await good.waitUntilDone();
      expect(await failing.listWaiting()).toEqual(SUBSCRIPTIONS);
      await failing.recover();
      await failing.waitUntilDone();
      await eventually(
        () => failing.listWaiting(),
        ({ length }) => length === 0,
      );
      expect(await otherStore.listWaiting()).toEqual(SUBSCRIPTIONS);
      await failing.act();
      await failing.waitUntilDone();
      await otherStore.recover();
      await otherStore.waitUntilDone();
      await eventually(
        () => otherStore.listWaiting(),
        ({ length }) => length === 0,
      );
      await next.kill('SIGTERM');
    },
    SLOW,
  );

  it(
    'is tried again at growing intervals, and with its first event first',
    async () => {
      const failing = await Shop.open();
      await failing.fail('P0001', [TABLES.passes]);
      await failing.act();
      await failing.act();
      const port = await findFreePort();
      await startDispatcher({ METRICS_PORT: String(port) });
      const readPostponements = () =>
        queryRows<{ seq: string; failures: number; seconds: number }>(
          `select seq, failures, seconds from postponements where account_id = $1
           order by seq, failures`,
          failing.store.accountId,
        );
      const hasFailed = (times: number) => (rows: { failures: number }[]) =>
        rows.some(({ failures }) => failures === times);
      await eventually(readPostponements, hasFailed(1));
      const metrics = samples(await (await fetch(`http://127.0.0.1:${port}/metrics`)).text());
      expect(metrics.value('inkpad_postponed_stores', { subscription: 'passes' })).toBe(1);
      await queryRows('update es.postponed_events set retry_at = now()');
      const rows = await eventually(readPostponements, hasFailed(2));
      const first = rows.find(({ failures }) => failures === 1);
      const again = rows.find(({ failures }) => failures === 2);
      expect([(first?.seconds ?? 0) > 0, (first?.seconds ?? 0) <= 10]).toEqual([true, true]);
      expect([(again?.seconds ?? 0) > 30, (again?.seconds ?? 0) <= 60]).toEqual([true, true]);
      const others = rows.filter(({ seq }) => seq !== rows[0]?.seq);
      expect(others.map(({ failures }) => failures)).toEqual(others.map(() => 0));
      await failing.recover();
      await failing.waitUntilDone();
    },
    SLOW,
  );

  it(
    'has a replay that was requested meanwhile send the postponed events as well',
    async () => {
      const [failing, good] = [await Shop.open(), await Shop.open()];
      await failing.fail('P0001', [TABLES.webhooks]);
      await failing.act();
      await good.act();
      await startDispatcher();
      await good.waitUntilDone();
      expect(await failing.listWaiting()).toEqual(['webhooks']);
      expect([await failing.replay(), await good.replay()]).toEqual([1, 1]);
      // By the round that starts this one, the other could have been started too.
      await eventually(
        () => good.countRequests(),
        (count) => count === 2,
      );
      expect(failing.countRequests()).toBe(0);
      await failing.recover();
      await eventually(
        () => failing.countRequests(),
        (count) => count === 2,
      );
    },
    SLOW,
  );

  it(
    'with a lock that stays does not hold up the passes of other stores',
    async () => {
      const [failing, good] = [await Shop.open(), await Shop.open()];
      const client = new pg.Client(service.database.url);
      await client.connect();
      await client.query('select pg_advisory_lock(4711)');
      await failing.fail('lock', [TABLES.passes]);
      await failing.act();
      await good.act();
      await startDispatcher();
      await good.waitUntilDone();
      expect(await failing.listWaiting()).toEqual(['passes']);
      await client.end();
      await failing.recover();
      await failing.waitUntilDone();
    },
    SLOW,
  );
});

describe('a change of a whole store', () => {
  it(
    'reaches the passes of the other stores while those of one store fail',
    async () => {
      const [failing, good] = [await Shop.open(), await Shop.open()];
      await startDispatcher();
      for (const shop of [failing, good]) {
        await shop.act();
        await shop.waitUntilDone();
      }
      await failing.fail('57014', [TABLES.passes]);
      const readTag = async ({ store: { accountId } }: Shop) =>
        (
          await queryRows<{ tag: number }>(
            'select max(tag)::int as tag from passes where account_id = $1',
            accountId,
          )
        )[0]?.tag;
      const rename = async ({ store }: Shop) =>
        store.send('PATCH', store.store, { account: { store_name: 'Renamed' } });
      const before = { failing: await readTag(failing), good: await readTag(good) };
      await rename(failing);
      await rename(good);
      await eventually(
        () => readTag(good),
        (tag) => tag !== before.good,
      );
      expect(await readTag(failing)).toBe(before.failing);
      await failing.recover();
      await eventually(
        () => readTag(failing),
        (tag) => tag !== before.failing,
      );
    },
    SLOW,
  );
});

describe('the history', () => {
  it(
    'has all that comes before an event that fails, and leaves nothing out',
    async () => {
      const failing = await Shop.open();
      const history = await openHistory(testConfig(service.database.url, service.environment));
      const stopping = new AbortController();
      const running = history.subscription.run(stopping.signal);
      const readNames = async () =>
        (
          await queryRows<{ account_id: number }>('select account_id from history order by seq')
        ).map(({ account_id }) => Number(account_id));
      const readAll = async () => (await service.history()).map(({ meta }) => meta.accountId);
      await failing.fail('57014', ['history']);
      await failing.act();
      const good = await Shop.open();
      const expected = await readAll();
      const first = expected.indexOf(failing.store.accountId);
      await eventually(readNames, ({ length }) => length >= first);
      expect(await readNames()).toEqual(expected.slice(0, first));
      await failing.recover();
      await eventually(readNames, ({ length }) => length >= expected.length);
      expect(await readNames()).toEqual(expected);
      expect(expected).toContain(good.store.accountId);
      stopping.abort();
      await running;
      await history.close();
    },
    SLOW,
  );
});
