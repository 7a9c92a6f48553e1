import { randomUUID } from 'node:crypto';
import { card, createCard } from '../dist/libs/loyalty/cards/card.js';
import { customerCard, issue, stamp } from '../dist/libs/loyalty/stamping/customer-card.js';
import { customerSubjects } from '../dist/libs/loyalty/stamping/customer-subjects.js';
import { MasterKeys } from '../dist/libs/platform/database/master-keys.js';
import { createDataSource, getPool } from '../dist/libs/platform/database/data-source.js';
import { getCurrentVersion } from '../dist/libs/platform/event-store/port/codec.js';
import { PersonalKeys } from '../dist/libs/platform/event-store/personal-keys/personal-keys.js';
import { PostgresEventStore } from '../dist/libs/platform/event-store/postgres/postgres-event-store.js';
import { readConfig } from '../dist/libs/configuration/config.js';

/**
 * Fills a migrated database with customer cards of ten events each, as the commit path writes them, for
 * `inkpad verify`.
 */
const events = Number(process.argv[2] ?? 1_000_000);
const EVENTS_A_CARD = 10;
const CARDS_A_COMMIT = 100;
const WRITERS = 2;
const accountId = 1;

const config = readConfig(process.env);
const source = await createDataSource(config, 'bench').initialize();
const store = new PostgresEventStore(getPool(source));
const masterKeys = new MasterKeys(getPool(source), config);
await masterKeys.onModuleInit();
const keys = new PersonalKeys(getPool(source), masterKeys, customerSubjects);
const template = {
  cardId: 1,
  version: 1,
  name: 'Coffee',
  stampsRequired: 10,
  initialStamps: 0,
  expiresAt: null,
  archivedAt: null,
  maxStampsPerRequest: null,
  maxStampsPerDay: null,
  minSecondsBetweenStamps: null,
  timeZone: 'UTC',
  rewards: [],
};
const action = {
  locationId: null,
  staffRef: null,
  externalRef: null,
  silent: false,
  personal: null,
  source: 'pos',
  occurredAt: undefined,
};

function write(aggregate, id, decide) {
  const { name, table, projectionVersion } = aggregate;
  let state;
  const written = [];
  // One command: claims belong to the revision at its end.
  const now = new Date();
  const requestId = randomUUID();
  while (written.length < (table === 'cards' ? 1 : EVENTS_A_CARD)) {
    const meta = {
      accountId,
      actor: { type: 'token', id: 1 },
      channel: 'pos',
      requestId,
      occurredAt: now.toISOString(),
      recordedAt: now.toISOString(),
    };
    for (const event of decide(state, now)) {
      const fact = { ...event, id: randomUUID(), meta };
      state = aggregate.evolve(state, fact);
      written.push({ ...fact, version: getCurrentVersion(aggregate, event.type) });
    }
  }
  const row = { table, id, projectionVersion, state };
  return { stream: `${name}-${id}`, expected: null, events: written, row };
}

function customerCardWrite(id) {
  const ids = { id, accountId, customerId: id, cardId: 1, uuid: randomUUID() };
  const code = id.toString(36).toUpperCase().padStart(8, '0');
  const creation = write(customerCard, id, (state, now) =>
    state
      ? stamp(state, template, { ...action, customerId: id, stamps: 1 }, now)
      : issue({ ...ids, code }, template),
  );
  const claims = [
    keys.createClaim(accountId, 'card_code', code, creation.stream),
    keys.createClaim(accountId, 'enrolment', `${id} 1`, creation.stream),
  ];
  return { creation, claims };
}

const attributes = { name: 'Coffee', initialStamps: 0, stampsRequired: 10, expiresAt: null };
await store.commit({
  accountId,
  writes: [write(card, 1, () => createCard(1, accountId, attributes))],
});
const cards = Math.ceil(events / EVENTS_A_CARD);
let next = 1;
await Promise.all(
  Array.from({ length: WRITERS }, async () => {
    while (next <= cards) {
      const ids = Array.from({ length: Math.min(CARDS_A_COMMIT, cards - next + 1) }, () => next++);
      const writes = ids.map(customerCardWrite);
      await store.commit({
        accountId,
        writes: writes.map((one) => one.creation),
        claims: writes.flatMap((one) => one.claims),
      });
    }
  }),
);
await getPool(source).query('vacuum analyze');
await store.onApplicationShutdown();
await source.destroy();
