import { randomUUID } from 'node:crypto';
import { customerCard, stamp } from '../dist/libs/loyalty/stamping/customer-card.js';
import { createDataSource, getPool } from '../dist/libs/platform/database/data-source.js';
import { getCurrentVersion } from '../dist/libs/platform/event-store/port/codec.js';
import { PostgresEventStore } from '../dist/libs/platform/event-store/postgres/postgres-event-store.js';
import { readConfig } from '../dist/libs/configuration/config.js';
import { template } from './inkpad.mjs';
import { inRandomOrder, round } from './rounds.mjs';
import { stampBody } from './stamp-body.mjs';

/**
 * Only the commit of the event store: events, row and hash chain as a stamping writes them, with the card's state and
 * head kept in memory. No HTTP, no load, no sealing (the note is a constant of the same size).
 */
const config = readConfig(process.env);
const source = await createDataSource(config, 'bench').initialize();
const store = new PostgresEventStore(getPool(source));

const accountId = Number(process.argv[2]);
const count = Number(process.argv[3]);
const sealedNote = Buffer.alloc(28 + Buffer.byteLength(JSON.stringify(stampBody.note))).toString(
  'base64',
);
const actionDetails = {
  locationId: null,
  staffRef: null,
  externalRef: null,
  silent: false,
  personal: sealedNote,
};
const cardTemplate = {
  cardId: 1,
  version: 1,
  name: template.name,
  stampsRequired: template.stampsRequired,
  initialStamps: 0,
  expiresAt: null,
  archivedAt: null,
  maxStampsPerRequest: null,
  maxStampsPerDay: null,
  minSecondsBetweenStamps: null,
  timeZone: 'UTC',
  rewards: template.rewards.map((reward, i) => ({
    id: i + 1,
    description: null,
    active: true,
    ...reward,
  })),
};

async function append(card, decided) {
  const now = new Date().toISOString();
  const meta = {
    accountId,
    actor: { type: 'token', id: 1 },
    channel: 'api',
    requestId: randomUUID(),
    occurredAt: now,
    recordedAt: now,
  };
  let { state } = card;
  const events = decided.map((event) => {
    const fact = { ...event, id: randomUUID(), meta };
    state = customerCard.evolve(state, fact);
    return { ...fact, version: getCurrentVersion(customerCard, event.type) };
  });
  const [head] = await store.commit({
    accountId,
    writes: [
      {
        stream: `customer_card-${card.id}`,
        expected: card.head,
        events,
        row: {
          table: 'customer_cards',
          id: card.id,
          projectionVersion: customerCard.projectionVersion,
          state,
        },
      },
    ],
  });
  Object.assign(card, { state, head });
}

const cards = Array.from({ length: count }, (_, i) => ({
  id: i + 1,
  state: undefined,
  head: null,
}));
await Promise.all(
  cards.map((card) =>
    append(card, [
      {
        type: 'CustomerCardIssued',
        data: {
          id: card.id,
          accountId,
          customerId: card.id,
          cardId: cardTemplate.cardId,
          uuid: randomUUID(),
          code: String(card.id).padStart(8, '0'),
        },
      },
    ]),
  ),
);
const order = inRandomOrder(cards);
const underWay = new Set();

process.on('message', (task) => {
  // A rejection ends the process, which the bench reports as a failure.
  void round(task, async () => {
    let card;
    // The last card of one pass may be the first of the next; with a request for it in flight, the revision check would
    // fail.
    do card = order.next().value;
    while (underWay.has(card));
    underWay.add(card);
    const command = {
      ...actionDetails,
      customerId: card.id,
      stamps: stampBody.stamps,
      source: 'api',
      occurredAt: undefined,
    };
    await append(card, stamp(card.state, cardTemplate, command, new Date()));
    underWay.delete(card);
    return true;
  }).then((result) => process.send(result));
});
process.send({ ready: true });
