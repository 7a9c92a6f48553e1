import { once } from 'node:events';
import { statSync } from 'node:fs';
import { createServer } from 'node:http';
import { parseArgs } from 'node:util';
import { StartFailure } from '../apps/cli/start-failure.mjs';
import { sleep, readFileIfExists } from '../apps/cli/processes.mjs';
import { median, table, whole } from './figures.mjs';
import { startInkpad } from './inkpad.mjs';
import { onStage } from './stage.mjs';
import { stampBody } from './stamp-body.mjs';

const CONCURRENCY = 16;
const STAMPS_A_CUSTOMER = 10;
const AUDITED = 1_000;
const LONE = 15;
const LOOK_EVERY_MS = 500;
/** Nothing was added for so many looks. */
const QUIET_LOOKS = 4;

/** Tables by day count as the table that they are a part of. */
const SIZES = `
  select coalesce(p.oid, c.oid)::regclass::text as name,
    sum(pg_table_size(c.oid))::int8 as data, sum(pg_indexes_size(c.oid))::int8 as indexes
  from pg_class c
  join pg_namespace n on n.oid = c.relnamespace
  left join pg_inherits i on i.inhrelid = c.oid
  left join pg_class p on p.oid = i.inhparent
  where c.relkind = 'r' and n.nspname in ('public', 'es')
  group by 1`;

const PROGRESS = `
  select (select count(*) from webhook_pending) as pending,
    (select count(*) from history) + (select count(*) from webhook_finished) as done`;

/** @param {string[]} args @returns {Promise<number>} the exit code */
export function run(args) {
  const { values } = parseArgs({
    args,
    options: {
      stamps: { type: 'string', default: '20000' },
      engine: { type: 'string', default: 'postgres' },
    },
  });
  const stamps = Number(values.stamps);
  if (!Number.isInteger(stamps) || stamps < 1_000) {
    throw new StartFailure(`--stamps ${values.stamps}: must be a whole number of at least 1000`);
  }
  if (!['postgres', 'eventstoredb'].includes(values.engine)) {
    throw new StartFailure(`--engine ${values.engine}: postgres or eventstoredb`);
  }
  return onStage((stage) => measure(stage, stamps, values.engine === 'eventstoredb'));
}

/** The room that each kind of record takes, by what a freshly filled database grows by. */
async function measure(stage, stamps, eventStoreDb) {
  const fill = await prepare(stage, eventStoreDb);
  const customers = Math.ceil(stamps / STAMPS_A_CUSTOMER);
  await fill.step('customer with a card', customers, () => fill.addCustomer());
  await fill.step('stamp', stamps, (n) => fill.stamp(n));
  await fill.step('stamp with external_ref and Idempotency-Key', stamps, (n) => fill.sell(n));
  await fill.subscribe();
  await fill.step('stamp with a delivery', stamps, (n) => fill.stamp(n));
  await fill.step('stamp with a delivery and an opened web card', customers, (n) => fill.open(n));
  await fill.step('entry of the audit log', AUDITED, (n) => fill.rename(n));
  await fill.loneStamps();
  fill.close();
  console.log(await stage.script('dist/apps/cli/verify.js', fill.service.env));
  return 0;
}

async function prepare(stage, eventStoreDb) {
  const server = eventStoreDb ? await stage.eventStoreDb('eventstoredb') : undefined;
  const receiver = createServer((request, response) => {
    request.resume().once('end', () => response.end('ok'));
  }).listen(0, '127.0.0.1');
  await once(receiver, 'listening');
  const service = await startInkpad(stage, 'bench_disk', {
    WEBHOOK_ALLOW_INSECURE_TARGETS: 'true',
    PAGE_RATE_LIMIT_PER_MINUTE: '100000000',
    ...(server && { EVENT_STORE_URL: server.connectionString }),
  });
  const dispatcher = stage.start('dist/apps/dispatcher/main.js', { env: service.env });
  return new Fill(stage, service, dispatcher, receiver, server?.log);
}

const inMebibytes = ({ pid }) =>
  `${whole(Number(/VmHWM:\s*(\d+)/.exec(readFileIfExists(`/proc/${pid}/status`) ?? '')?.[1]) / 1_024)} MiB`;

class Fill {
  cards = [];

  constructor(stage, service, dispatcher, receiver, eventLog) {
    Object.assign(this, { stage, service, dispatcher, receiver, eventLog });
  }

  async addCustomer() {
    const number = this.cards.length;
    const place = this.cards.push(undefined) - 1;
    const { id, customer_card: card } = await this.post('/customers', {
      customer: { first_name: `Guest ${number}`, email: `guest${number}@example.com` },
      card_id: 1,
    });
    this.cards[place] = { path: `/customers/${id}/customer_cards/${card.id}`, ...card };
  }

  stamp(n) {
    return this.post(`${this.cardOf(n).path}/stamp`, stampBody);
  }

  /** As a till does it. */
  sell(n) {
    const body = { ...stampBody, external_ref: `receipt-${n}` };
    return this.post(`${this.cardOf(n).path}/stamp`, body, { 'idempotency-key': `sale-${n}` });
  }

  async subscribe() {
    const url = `http://127.0.0.1:${this.receiver.address().port}/`;
    this.subscription = await this.post('/webhook_subscriptions', {
      target_url: url,
      events: ['stamp.earned'],
    });
  }

  async open(n) {
    const { apple_wallet_url: link } = this.cardOf(n);
    const page = new URL(link).pathname.replace(/\/apple$/, '');
    const response = await fetch(`http://127.0.0.1:${this.service.port}${page}`);
    if (!response.ok) throw new Error(`GET ${page}: ${response.status}`);
    await response.text();
    await this.stamp(n);
  }

  rename(n) {
    const change = { description: `Till ${n}` };
    return this.send('PATCH', `/webhook_subscriptions/${this.subscription.id}`, change);
  }

  cardOf(n) {
    return this.cards[n % this.cards.length];
  }

  post(path, body, headers) {
    return this.send('POST', path, body, headers);
  }

  async send(method, path, body, headers = {}) {
    const { port, token, accountId } = this.service;
    const url = `http://127.0.0.1:${port}/api/v1/accounts/${accountId}${path}`;
    const own = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const request = { method, headers: { ...own, ...headers }, body: JSON.stringify(body) };
    const response = await fetch(url, request);
    if (!response.ok)
      throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
    return response.json();
  }

  /** Does the work `count` times, and prints what the database grew by. */
  async step(what, count, work) {
    const before = await this.size();
    let next = 0;
    const loop = async () => {
      while (next < count) await work(next++);
    };
    await Promise.all(Array.from({ length: CONCURRENCY }, loop));
    const after = await this.size();
    const grown = after.tables
      .map(({ name, data, indexes }) => {
        const was = before.tables.find((one) => one.name === name) ?? { data: 0, indexes: 0 };
        return { name, data: (data - was.data) / count, indexes: (indexes - was.indexes) / count };
      })
      .filter(({ data, indexes }) => data + indexes >= 1)
      .sort((a, b) => b.data + b.indexes - a.data - a.indexes);
    const sum = (part) => grown.reduce((total, one) => total + one[part], 0);
    const rows = [{ name: 'all', data: sum('data'), indexes: sum('indexes') }, ...grown];
    const wal = (after.wal - before.wal) / count;
    const log = (after.log - before.log) / count;
    console.log(
      `\nOne ${what}, bytes of ${whole(count)}: WAL ${whole(wal)}, EventStoreDB ${whole(log)}`,
    );
    console.log(
      table([
        ['', 'table', 'indexes', 'both'],
        ...rows.map(({ name, data, indexes }) => [
          name,
          ...[data, indexes, data + indexes].map((bytes) => whole(bytes)),
        ]),
      ]),
    );
    console.log(
      `most memory so far: api ${inMebibytes(this.service)}, dispatcher ${inMebibytes(this.dispatcher)}`,
    );
  }

  /** The first change of a page after a checkpoint of the server writes all of it to the WAL. */
  async loneStamps() {
    const wal = [];
    for (let n = 0; n < LONE; n++) {
      await this.ask('checkpoint');
      const before = await this.size();
      await this.stamp(n * 97);
      wal.push((await this.size()).wal - before.wal);
    }
    console.log(
      `\nWAL of the first stamp after a checkpoint, with its delivery: ${whole(median(wal))} bytes`,
    );
  }

  /** When the dispatcher has done everything and the server has tidied up. */
  async size() {
    let before;
    for (let quiet = 0; quiet < QUIET_LOOKS;) {
      const [{ pending, done }] = await this.ask(PROGRESS);
      quiet = pending === 0 && done === before ? quiet + 1 : 0;
      before = done;
      await sleep(LOOK_EVERY_MS, this.stage.abort.signal);
    }
    const [{ wal }] = await this.ask(`select pg_current_wal_insert_lsn() - '0/0' as wal`);
    await this.ask('vacuum');
    const log = this.eventLog ? statSync(this.eventLog).size : 0;
    return { tables: await this.ask(SIZES), wal: Number(wal), log };
  }

  ask(text) {
    return this.stage.query(this.service.url, text);
  }

  close() {
    this.receiver.close();
    this.receiver.closeAllConnections();
  }
}
