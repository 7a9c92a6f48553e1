import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { customer } from '../dist/libs/loyalty/customers/customer.js';
import { customerCard } from '../dist/libs/loyalty/stamping/customer-card.js';

const BATCH = 5_000;
const CODE = '23456789ABCDEFGHJKLMNPQRSTUVWXYZ';
// prettier-ignore
const FIRST_NAMES = [
  'Anna', 'Annika', 'Ben', 'Björn', 'Carla', 'Çiğdem', 'Chloé', 'Dmitri', 'Дмитрий', 'Elif', 'Emma',
  'Félix', 'Finn', 'Greta', 'Hannah', 'İbrahim', 'Ida', 'Jonas', 'Jürgen', 'Katarzyna', 'Lena', 'Leon',
  'Łukasz', 'Marie', 'Mehmet', 'Νίκος', 'Noah', 'Olga', 'Paul', 'Renée', 'Sofia', 'Søren', 'Theo',
  'Uwe', 'Valentina', 'Wiebke', 'Yusuf', 'Zoë', '美咲', '大翔',
];
// prettier-ignore
const LAST_NAMES = [
  'Andersen', 'Arslan', 'Bauer', 'Becker', 'Çelik', 'Cruz', 'Dubois', 'Fischer', 'García', 'Groß',
  'Hansen', 'Hoffmann', 'Иванов', 'Jansen', 'Kaya', 'Klein', 'Kowalski', 'Krüger', 'Lefèvre', 'Meyer',
  'Müller', 'Nowak', 'Öztürk', 'Παπαδόπουλος', 'Petrov', 'Richter', 'Rossi', 'Schäfer', 'Schmidt',
  'Schneider', 'Schröder', 'Silva', 'Sørensen', 'Strauß', 'Svensson', 'Vogel', 'Weber', 'Wiśniewski',
  'Yılmaz', '佐藤',
];
const MAIL_HOSTS = ['example.com', 'example.com', 'example.com', 'mail.example', 'post.example'];

/**
 * Writes the rows of many customers of one store, each with one card, as the folds make them but without their events,
 * because only reading is measured.
 * @param {{ url: string, accountId: number, cardId: number, count: number }} what
 */
export async function fillCustomers({ url, accountId, cardId, count }) {
  const random = mulberry32(42);
  const pick = (list) => list[Math.floor(random() * list.length)];
  const client = new pg.Client(url);
  await client.connect();
  try {
    const [{ first }] = (await client.query(`select nextval('customers_id')::int + 1 as first`))
      .rows;
    for (let start = 0; start < count; start += BATCH) {
      const customers = [];
      const cards = [];
      for (let i = start; i < Math.min(start + BATCH, count); i++) {
        const id = first + i;
        customers.push({ id, state: person({ id, i, accountId, pick, random }) });
        cards.push({ id, state: enrolment({ id, accountId, cardId, random }) });
      }
      for (const [table, rows] of [
        ['customers', customers],
        ['customer_cards', cards],
      ]) {
        const { projectionVersion: v } = table === 'customers' ? customer : customerCard;
        const written = rows.map(({ id, state }) => {
          return { t: table, s: '', id, a: accountId, r: 0, h: '00', v, st: state };
        });
        await client.query(`select es.write_read_models(array[$1], $2, array[''])`, [
          table,
          JSON.stringify(written),
        ]);
      }
    }
    for (const sequence of ['customers_id', 'customer_cards_id']) {
      await client.query(`select setval('${sequence}', $1)`, [first + count]);
    }
    // Autovacuum would do this within a minute or so of a quiet database.
    await client.query('vacuum (analyze) customers, customer_cards');
    return first;
  } finally {
    await client.end();
  }
}

function person({ id, i, accountId, pick, random }) {
  const [firstName, lastName] = [pick(FIRST_NAMES), pick(LAST_NAMES)];
  const at = new Date(Date.UTC(2025, 0, 1) + i * 60_000).toISOString();
  const references =
    random() < 0.3
      ? [{ source: 'pos', externalId: `P-${i}`, metadata: {}, createdAt: at, updatedAt: at }]
      : [];
  const data = {
    customerId: id,
    accountId,
    source: 'api',
    marketingConsent: random() < 0.5,
    smsConsent: random() < 0.2,
    sendCardLinks: false,
    agreed: null,
    personal: {
      firstName,
      lastName: random() < 0.9 ? lastName : null,
      email: `${latin(firstName)}.${latin(lastName)}${i}@${pick(MAIL_HOSTS)}`,
      phone: random() < 0.6 ? `+4915${String(Math.floor(random() * 1e9)).padStart(9, '0')}` : null,
      birthday: random() < 0.3 ? '1990-05-31' : null,
      metadata: random() < 0.2 ? { tier: pick(['gold', 'silver']), visits: i % 50 } : {},
      externalReferences: references,
    },
  };
  return customer.evolve(undefined, { type: 'CustomerCreated', data, meta: { recordedAt: at } });
}

function enrolment({ id, accountId, cardId, random }) {
  const code = Array.from({ length: 8 }, () => CODE[Math.floor(random() * CODE.length)]).join('');
  const data = { id, accountId, customerId: id, cardId, uuid: randomUUID(), code };
  const at = '2026-01-01T00:00:00.000Z';
  return customerCard.evolve(undefined, {
    type: 'CustomerCardIssued',
    data,
    meta: { occurredAt: at, recordedAt: at },
  });
}

function latin(name) {
  const plain = name.normalize('NFD').replaceAll(/[^A-Za-z]/g, '');
  return plain === '' ? 'guest' : plain.toLowerCase();
}

/** A seeded generator, so that every run has the same customers. */
function mulberry32(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
