import { Inject, Injectable, Logger } from '@nestjs/common';
import pg from 'pg';
import { DataSource } from 'typeorm';
import type { Config } from '#kernel/config.js';
import { messageOf } from '#kernel/errors.js';
import { pause } from '#kernel/pause.js';
import { inTransaction, isDatabaseAway } from '#database/connection.js';
import { poolOf } from '#database/data-source.js';
import { CONFIG } from '#database/database.module.js';
import { checkpointOf } from '#event-store/checkpoint.js';
import {
  BEGINNING,
  EventStore,
  type Position,
  type StoredEvent,
} from '#event-store/event-store.js';
import { PersonalKeys } from '#event-store/personal-keys.js';
import { formatPosition, isAfter, parsePosition } from '#event-store/position.js';
import { DeliveryWorker } from './delivery-worker.service.js';
import { publicTypeOf } from './public-events.js';
import { PublicEventsService } from './public-events.service.js';
import { bodyContext } from './delivery-queue.service.js';
import { wants, type PayloadFormat } from './webhook-subscription.js';

const SUBSCRIPTION = 'webhooks';
const BATCH = 500;
const LEADER_LOCK = 727_001;
const LEADER_POLL_MS = 1_000;
const BACK_OFF_MS = { first: 500, longest: 30_000 };
/** A leader whose machine vanished is noticed by the server after about ten seconds. */
const NOTICE_LOSS =
  '-c tcp_keepalives_idle=4 -c tcp_keepalives_interval=2 -c tcp_keepalives_count=3';

type Listener = {
  id: number;
  account_id: number;
  events: string[];
  payload_format: PayloadFormat;
  active_from: string;
};

type Planned = {
  events: { id: string; accountId: number; customerId: number; type: string; body: Buffer }[];
  deliveries: {
    subscriptionId: number;
    eventId: string;
    customerId: number;
    payloadFormat: PayloadFormat;
  }[];
};

/** Another process has moved the checkpoint: what was prepared here is already done there. */
class OvertakenError extends Error {}

/**
 * Turns the log into deliveries, each exactly once: events and checkpoint move in one transaction that
 * compares the checkpoint first. One process does it at a time; the lock only spares the others work,
 * the comparison is what makes it safe.
 */
@Injectable()
export class FanOut {
  private readonly log = new Logger('webhook fan-out');
  private readonly pool: pg.Pool;

  constructor(
    source: DataSource,
    private readonly store: EventStore,
    private readonly keys: PersonalKeys,
    private readonly publicEvents: PublicEventsService,
    private readonly worker: DeliveryWorker,
    @Inject(CONFIG) private readonly config: Config,
  ) {
    this.pool = poolOf(source);
  }

  /** Until the signal aborts, whatever happens to the database. */
  async run(signal: AbortSignal): Promise<void> {
    for (let away = false; !signal.aborted;) {
      try {
        await this.stand(signal);
        away = false;
      } catch (error) {
        if (!away) this.log.warn(`leadership cannot be asked for: ${messageOf(error)}`);
        away = true;
      }
      await pause(LEADER_POLL_MS, signal);
    }
  }

  /** Asks for the lock until it is given, and leads until the connection that holds it is lost. */
  private async stand(signal: AbortSignal): Promise<void> {
    const client = new pg.Client({
      connectionString: this.config.databaseUrl,
      application_name: 'inkpad webhook fan-out',
      connectionTimeoutMillis: 5_000,
      keepAlive: true,
      options: NOTICE_LOSS,
    });
    const lost = new AbortController();
    client.on('error', (error) => {
      this.log.warn(`leadership is lost: ${error.message}`);
      lost.abort();
    });
    client.on('end', () => lost.abort());
    const connected = AbortSignal.any([signal, lost.signal]);
    try {
      await client.connect();
      while (!connected.aborted) {
        const { rows } = await client.query<{ leads: boolean }>(
          'select pg_try_advisory_lock($1) as leads',
          [LEADER_LOCK],
        );
        if (rows[0]?.leads) await this.follow(connected);
        else await pause(LEADER_POLL_MS, connected);
      }
    } finally {
      await client.end().catch((error: unknown) => this.log.debug(messageOf(error)));
    }
  }

  private async follow(signal: AbortSignal): Promise<void> {
    this.log.log('follows the log');
    for (let backOff = BACK_OFF_MS.first; !signal.aborted;) {
      try {
        const after = await checkpointOf(this.pool, SUBSCRIPTION);
        let position = after;
        await this.store.subscribe({
          after,
          batch: BATCH,
          signal,
          onEvents: async (events, to) => {
            position = await this.advance(position, events, to);
            backOff = BACK_OFF_MS.first;
          },
        });
      } catch (error) {
        if (error instanceof OvertakenError) continue;
        const message = `${messageOf(error)}; tried again in ${backOff} ms`;
        if (isDatabaseAway(error)) this.log.warn(message);
        else this.log.error(message, stackOf(error));
        await pause(backOff, signal);
        backOff = Math.min(2 * backOff, BACK_OFF_MS.longest);
      }
    }
  }

  /** One event that fails must hold up only what comes after it, and its id must be known. */
  private async advance(from: Position, events: StoredEvent[], to: Position): Promise<Position> {
    try {
      return await this.planBatch(from, events, to);
    } catch (error) {
      if (error instanceof OvertakenError || isDatabaseAway(error)) throw error;
      this.log.warn(`a batch of ${events.length} events goes one by one: ${messageOf(error)}`);
    }
    let position = from;
    for (const event of events) {
      try {
        position = await this.planBatch(position, [event], event.position);
      } catch (cause) {
        if (cause instanceof OvertakenError || isDatabaseAway(cause)) throw cause;
        throw new Error(`event ${event.id} holds up all webhooks: ${messageOf(cause)}`, { cause });
      }
    }
    return position;
  }

  private async planBatch(from: Position, events: StoredEvent[], to: Position): Promise<Position> {
    const planned = await this.plan(events);
    await this.save(from, to, planned);
    if (planned.deliveries.length > 0) this.worker.wake();
    return to;
  }

  private async plan(events: StoredEvent[]): Promise<Planned> {
    const listeners = await this.listeners(events);
    const wanted = events.filter((event) => listenersOf(event, listeners).length > 0);
    if (wanted.length === 0) return { events: [], deliveries: [] };
    const rendered = await this.publicEvents.render(wanted);
    await this.keys.load(rendered.map(({ customerId }) => customerId));
    const planned: Planned = { events: [], deliveries: [] };
    for (const [i, { event, customerId }] of rendered.entries()) {
      const stored = wanted[i];
      if (!stored) throw new Error('rendering keeps the number of events');
      if (!event) continue;
      const body = await this.keys.sealText(
        customerId,
        JSON.stringify(event),
        bodyContext(event.id),
      );
      // The person was erased: there is nothing left that may be sent.
      if (!body) continue;
      const { id, type, account_id: accountId } = event;
      planned.events.push({ id, accountId, customerId, type, body });
      for (const listener of listenersOf(stored, listeners)) {
        planned.deliveries.push({
          subscriptionId: listener.id,
          eventId: id,
          customerId,
          payloadFormat: listener.payload_format,
        });
      }
    }
    return planned;
  }

  /** Read after the events: a subscription that was answered before an event was recorded is among them. */
  private async listeners(events: StoredEvent[]): Promise<Map<number, Listener[]>> {
    const accountIds = new Set<number>();
    for (const { type, meta } of events) {
      if (publicTypeOf(type)) accountIds.add(meta.accountId);
    }
    const byAccount = new Map<number, Listener[]>();
    if (accountIds.size === 0) return byAccount;
    const { rows } = await this.pool.query<Listener>({
      name: 'webhook_listeners',
      text: `select id, account_id, events, payload_format, active_from from webhook_subscriptions
             where account_id = any ($1) and enabled order by id`,
      values: [[...accountIds]],
    });
    for (const row of rows) {
      const known = byAccount.get(row.account_id);
      if (known) known.push(row);
      else byAccount.set(row.account_id, [row]);
    }
    return byAccount;
  }

  private async save(from: Position, to: Position, planned: Planned): Promise<void> {
    await inTransaction(this.pool, async (client) => {
      await moveCheckpoint(client, from, to);
      if (planned.events.length > 0) await insert(client, planned);
    });
  }
}

/** First, because it also locks: whoever loses waits here and then writes nothing. */
async function moveCheckpoint(client: pg.PoolClient, from: Position, to: Position): Promise<void> {
  const begins = from.commit === BEGINNING.commit && from.prepare === BEGINNING.prepare;
  const { rowCount } = begins
    ? await client.query(
        'insert into es.checkpoints (subscription, position) values ($1, $2) on conflict do nothing',
        [SUBSCRIPTION, formatPosition(to)],
      )
    : await client.query({
        name: 'webhook_checkpoint',
        text: `update es.checkpoints set position = $3, updated_at = now()
               where subscription = $1 and position = $2`,
        values: [SUBSCRIPTION, formatPosition(from), formatPosition(to)],
      });
  if (rowCount !== 1) throw new OvertakenError('another process has moved the checkpoint');
}

async function insert(client: pg.PoolClient, { events, deliveries }: Planned): Promise<void> {
  await client.query({
    name: 'webhook_events',
    text: `insert into webhook_events (id, account_id, customer_id, type, body, created_at)
           select *, now() from unnest($1::text[], $2::bigint[], $3::bigint[], $4::text[], $5::bytea[])
           on conflict (id) do nothing`,
    values: [
      events.map((event) => event.id),
      events.map((event) => event.accountId),
      events.map((event) => event.customerId),
      events.map((event) => event.type),
      events.map((event) => event.body),
    ],
  });
  const enabled = await lockEnabled(client, deliveries);
  const wanted = deliveries.filter(({ subscriptionId }) => enabled.has(subscriptionId));
  // Ids rise in the order of the events: that order is what first attempts keep to.
  await client.query({
    name: 'webhook_deliveries',
    text: `insert into webhook_deliveries (subscription_id, event_id, customer_id, payload_format,
             status, waiting, next_attempt_at, created_at)
           select x.subscription_id, x.event_id, x.customer_id, x.payload_format, 'pending',
             x.follows or exists (
               select from webhook_deliveries e
               where e.subscription_id = x.subscription_id and e.customer_id = x.customer_id
                 and e.status = 'pending' and e.attempts_count = 0),
             now(), now()
           from unnest($1::bigint[], $2::text[], $3::bigint[], $4::text[], $5::boolean[])
             with ordinality
             as x (subscription_id, event_id, customer_id, payload_format, follows, ord)
           order by x.ord
           on conflict (subscription_id, event_id) do nothing`,
    values: [
      wanted.map((delivery) => delivery.subscriptionId),
      wanted.map((delivery) => delivery.eventId),
      wanted.map((delivery) => delivery.customerId),
      wanted.map((delivery) => delivery.payloadFormat),
      followers(wanted),
    ],
  });
}

/**
 * Those that are still there and enabled. The lock keeps results from being recorded meanwhile: a
 * delivery planned as waiting would otherwise miss that the one before it has just been tried.
 */
async function lockEnabled(
  client: pg.PoolClient,
  deliveries: Planned['deliveries'],
): Promise<Set<number>> {
  const ids = new Set(deliveries.map((delivery) => delivery.subscriptionId));
  const { rows } = await client.query<{ id: number }>({
    name: 'webhook_listeners_lock',
    text: `select id from webhook_subscriptions where id = any ($1) and enabled order by id for share`,
    values: [[...ids]],
  });
  return new Set(rows.map((row) => row.id));
}

/** For each delivery, whether an earlier one of the batch is about the same customer. */
function followers(deliveries: Planned['deliveries']): boolean[] {
  const seen = new Set<string>();
  return deliveries.map(({ subscriptionId, customerId }) => {
    const pair = `${subscriptionId} ${customerId}`;
    const follows = seen.has(pair);
    seen.add(pair);
    return follows;
  });
}

function listenersOf(event: StoredEvent, listeners: Map<number, Listener[]>): Listener[] {
  const type = publicTypeOf(event.type);
  if (!type) return [];
  return (listeners.get(event.meta.accountId) ?? []).filter(
    ({ events, active_from }) =>
      wants(events, type) && isAfter(event.position, parsePosition(active_from)),
  );
}

function stackOf(error: unknown): string | undefined {
  return error instanceof Error ? error.stack : undefined;
}
