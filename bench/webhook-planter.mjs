import 'reflect-metadata';
import { randomUUID } from 'node:crypto';
import { NestFactory } from '@nestjs/core';
import { CommandBus } from '@nestjs/cqrs';
import { DataSource } from 'typeorm';
import { CreateAccount } from '../dist/libs/loyalty/accounts/account.commands.js';
import { AddMember } from '../dist/libs/identity/member.commands.js';
import { readConfig } from '../dist/libs/configuration/config.js';
import { StampCustomerCard } from '../dist/libs/loyalty/stamping/customer-card.commands.js';
import { getPool } from '../dist/libs/platform/database/data-source.js';
import { EventBodies } from '../dist/libs/outbound/public-events/event-bodies.service.js';
import { DeliveryQueues } from '../dist/libs/outbound/dispatch/delivery-queues.service.js';
import { FanOut } from '../dist/libs/outbound/dispatch/fan-out.subscription.js';
import { GeocodingSubscription } from '../dist/libs/outbound/geocoding/geocoding.subscription.js';
import { CardLinkFollower } from '../dist/libs/outbound/messages/card-links.subscription.js';
import { PassChanges } from '../dist/libs/outbound/passes/pass-changes.subscription.js';
import { TransparencyLog } from '../dist/libs/outbound/transparency/transparency-log.subscription.js';
import { StatisticsSubscription } from '../dist/libs/loyalty/statistics/statistics.subscription.js';
import { HistorySubscription } from '../dist/libs/loyalty/history/history.subscription.js';
import { ApiModule } from '../dist/apps/api/api.module.js';
import { DispatcherModule } from '../dist/apps/dispatcher/dispatcher.module.js';

/**
 * Creates stores, stamps their customers' cards and, on request, follows their events and plans the resulting deliveries,
 * all with the product's own commands, event store and subscriptions, but without HTTP. Only the sending is left to the
 * dispatcher under test, so that its backlog can be built up before the clock starts.
 */
const CONCURRENCY = 256;
/** The dispatcher's other work for every event, delivered or not. */
const FOLLOWERS = [
  HistorySubscription,
  StatisticsSubscription,
  TransparencyLog,
  PassChanges,
  CardLinkFollower,
  GeocodingSubscription,
];
const OWNER = 'owner@inkpad.local';
const SYSTEM = { type: 'system', id: 0 };

const config = readConfig(process.env);
const options = { logger: ['fatal', 'error'], abortOnError: false };
const api = await NestFactory.createApplicationContext(ApiModule.forRoot(config), options);
const bus = api.get(CommandBus);
const planning = await NestFactory.createApplicationContext(
  DispatcherModule.forRoot(config),
  options,
);
// Its fan-out would lease the queues, and their deliveries would be sent from here.
planning.get(DeliveryQueues, { strict: false }).isStopping = true;

/** Per store: the cards of its customers, and which is next. */
const stores = [];
let stampCount = 0;
let leading;

function context(accountId) {
  return { accountId, actor: SYSTEM, channel: 'cli', requestId: randomUUID() };
}

async function makeStores({ count }) {
  const accountIds = [];
  for (let i = 0; i < count; i++) {
    const { id } = await bus.execute(
      new CreateAccount(context(0), {
        name: `Store ${i + 1}`,
        storeName: null,
        personal: false,
        timeZone: 'UTC',
        locale: 'en',
      }),
    );
    await bus.execute(new AddMember(context(id), id, OWNER, 'owner'));
    accountIds.push(id);
  }
  return { accountIds };
}

/** Stamps in the stores up to `spread` in turn, or in one store only; in each store the customers take turns. */
async function stampMany({ count, store: only, spread }) {
  let left = count;
  const loop = async () => {
    while (left-- > 0) await stampNext(stores[only ?? stampCount++ % spread]);
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, loop));
  return {};
}

function stampNext(store) {
  const { customerId, id } = store.cards[store.stampCount++ % store.cards.length];
  return bus.execute(
    new StampCustomerCard(
      context(store.accountId),
      { customerId, id },
      {
        stamps: 1,
        source: 'api',
        occurredAt: undefined,
        locationId: null,
        staffRef: null,
        externalRef: null,
        silent: false,
        personal: { note: 'two flat whites and a cinnamon bun, at the bar' },
      },
    ),
  );
}

/**
 * The first process that leads a subscription keeps leading, so the dispatcher stands by until this process gives it up.
 * @param {{ on: boolean, follows?: boolean }} wanted follows: not the fan-out alone
 */
async function lead({ on, follows }) {
  if (on) {
    const stopping = new AbortController();
    const running = Promise.all(
      [FanOut, ...(follows ? FOLLOWERS : [])].map((subscription) =>
        planning.get(subscription, { strict: false }).run(stopping.signal),
      ),
    );
    leading = { stopping, running };
  } else {
    leading?.stopping.abort();
    await leading?.running;
    leading = undefined;
  }
  return {};
}

/**
 * Renders what the dispatcher would render once for all receivers of an event; the peers get their bodies ready-made as
 * well.
 */
async function render() {
  const pool = getPool(planning.get(DataSource, { strict: false }));
  const bodies = planning.get(EventBodies, { strict: false });
  for (let after = 0; ;) {
    const { rows } = await pool.query(
      `select seq, event_id, account_id, customer_id from webhook_events e
       where seq > $1 and not exists (select from webhook_bodies b where b.seq = e.seq)
         and type = 'stamp.earned'
       order by seq limit 500`,
      [after],
    );
    const last = rows.at(-1);
    if (!last) return {};
    await bodies.getTexts(
      rows.map((row) => ({
        seq: row.seq,
        eventId: row.event_id,
        accountId: row.account_id,
        customerId: row.customer_id,
      })),
    );
    after = last.seq;
  }
}

const act = {
  stores: makeStores,
  async know({ cards }) {
    stores.push(...cards.map((store) => ({ ...store, stampCount: 0 })));
    return {};
  },
  stamp: stampMany,
  lead,
  render,
};

process.on('message', ({ ask, tag, ...rest }) => {
  // A rejection ends the process, which the bench reports as a failure.
  void act[ask](rest).then((result) => process.send({ tag, ...result }));
});
process.send({ ready: true });
