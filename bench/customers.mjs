import { parseArgs } from 'node:util';
import pg from 'pg';
import { StartFailure } from '../apps/cli/start-failure.mjs';
import { CustomersService } from '../dist/libs/loyalty/customers/customers.service.js';
import { cpuTime, cpuTimeOf, cpuTimeOfFamily } from './cpu-time.mjs';
import { fillCustomers } from './customers-fill.mjs';
import { median, ms, spread, table, us, whole } from './figures.mjs';
import { startInkpad } from './inkpad.mjs';
import { onStage } from './stage.mjs';

const FLOOR_MS = 100;

/** @param {string[]} args @returns {Promise<number>} the exit code */
export function run(args) {
  const { values } = parseArgs({
    args,
    options: {
      customers: { type: 'string', default: '200000' },
      rounds: { type: 'string', default: '9' },
      plans: { type: 'boolean', default: false },
    },
  });
  const [customers, rounds] = [Number(values.customers), Number(values.rounds)];
  if (!Number.isInteger(customers) || customers < 1000) {
    throw new StartFailure(
      `--customers ${values.customers}: must be a whole number of at least 1000`,
    );
  }
  if (!Number.isInteger(rounds) || rounds < 1) {
    throw new StartFailure(`--rounds ${values.rounds}: must be a whole number of at least 1`);
  }
  return onStage((stage) => measure(stage, { customers, rounds, plans: values.plans }));
}

async function measure(stage, { customers, rounds, plans }) {
  const { url, accountId, pid, port, token } = await startInkpad(stage, 'bench_customers');
  const [{ card_id: cardId }] = await stage.query(url, 'select min(id) as card_id from cards');
  console.error(`writing ${whole(customers)} customers …`);
  await fillCustomers({ url, accountId, cardId, count: customers });

  const request = async (query) => {
    const start = performance.now();
    const response = await fetch(
      `http://127.0.0.1:${port}/api/v1/accounts/${accountId}/customers?${new URLSearchParams(query)}`,
      { headers: { authorization: `Bearer ${token}` } },
    );
    const body = await response.json();
    if (!response.ok) throw new Error(`${JSON.stringify(query)}: ${JSON.stringify(body)}`);
    return { took: performance.now() - start, body };
  };

  const questions = questionsAbout(await somebody(stage, url, customers), customers);
  for (const question of questions) {
    const { body } = await request(question.query);
    Object.assign(question, { rowCount: body.pagination.count, times: [], used: [] });
  }
  const parts = { api: () => cpuTime(pid), postgres: () => cpuTimeOfFamily(stage.postgres.pid) };
  for (let round = 0; round < rounds; round++) {
    for (const question of questions) {
      const { result, used } = await cpuTimeOf(parts, () => request(question.query));
      question.times.push(result.took);
      question.used.push(used);
    }
  }
  console.log(
    table([
      ['matching customers', 'found', 'ms, median (lowest-highest)', 'api µs', 'PostgreSQL µs'],
      ...questions.map(({ name, rowCount, times, used }) => [
        name,
        whole(rowCount),
        spread(times, ms),
        ...['api', 'postgres'].map((part) => {
          const values = used.map((one) => one[part]);
          return us(values.includes(null) ? null : median(values));
        }),
      ]),
    ]),
  );
  if (plans) await explain(url, accountId, questions);

  // The fastest time counts, because other programs on the machine can only make a query slower.
  const slow = questions.filter(({ short, times }) => !short && Math.min(...times) > FLOOR_MS);
  for (const { name, times } of slow) {
    console.log(`FAIL: ${name}: ${ms(Math.min(...times))} ms (at most ${FLOOR_MS})`);
  }
  if (slow.length === 0) console.log(`PASS: three characters and more in at most ${FLOOR_MS} ms`);
  return slow.length === 0 ? 0 : 1;
}

/** A customer who has every field that can be searched for. */
async function somebody(stage, url, customers) {
  const [person] = await stage.query(
    url,
    `select k.code, k.uuid, c.state ->> 'email' as email, c.phone_digits as phone,
       c.state #>> '{externalReferences,0,externalId}' as external_id
     from customers c join customer_cards k on k.customer_id = c.id
     where c.phone_digits is not null and c.state #>> '{externalReferences,0,externalId}' is not null
     order by c.id offset $1 limit 1`,
    [Math.floor(customers / 100)],
  );
  return person;
}

function questionsAbout({ code, uuid, email, phone, external_id }, customers) {
  const last = Math.ceil(customers / 20);
  const short = true;
  return [
    { name: 'no term', query: {} },
    { name: 'no term, last page', query: { page: last } },
    { name: 'no term, page 1,000,000', query: { page: 1_000_000 } },
    { name: 'a', query: { search: 'a' }, short },
    { name: '佐', query: { search: '佐' }, short },
    { name: 'an', query: { search: 'an' }, short },
    { name: 'qx', query: { search: 'qx' }, short },
    { name: 'ann', query: { search: 'ann' } },
    { name: 'com', query: { search: 'com' } },
    { name: 'zqx', query: { search: 'zqx' } },
    { name: 'ИВА', query: { search: 'ИВА' } },
    { name: 'example.', query: { search: 'example.' } },
    { name: 'example., page 5,000', query: { search: 'example.', page: 5_000 } },
    { name: 'wiebke.g', query: { search: 'wiebke.g' } },
    { name: 'anna müller', query: { search: 'anna müller' } },
    { name: 'an e-mail address', query: { search: email } },
    { name: 'phone digits +49 15', query: { search: '+49 15' } },
    { name: 'the digits of one phone', query: { search: phone.slice(3) } },
    { name: 'a card code', query: { search: code } },
    { name: 'a card uuid', query: { search: uuid } },
    { name: 'an external id', query: { search: external_id } },
    { name: 'source and external id', query: { source: 'pos', external_id } },
  ];
}

/** Prints the query plans of the very statements that the service sends. */
async function explain(url, accountId, questions) {
  const client = new pg.Client(url);
  await client.connect();
  const explaining = {
    async query({ text, values }) {
      const { rows } = await client.query(`explain (analyze, buffers) ${text}`, values);
      console.log(rows.map((row) => row['QUERY PLAN']).join('\n'));
      return client.query(text, values);
    },
    on: () => undefined,
    off: () => undefined,
    release: () => undefined,
  };
  const pool = { connect: (done) => done(undefined, explaining) };
  const service = new CustomersService(pool, { ofCustomers: async () => new Map() });
  try {
    for (const { name, query } of questions) {
      const { search = null, page = 1 } = query;
      const reference = query.source
        ? { source: query.source, externalId: query.external_id }
        : null;
      console.log(`\n== ${name}`);
      await service.list(accountId, { search, reference }, { page, items: 20 });
    }
  } finally {
    await client.end();
  }
}
