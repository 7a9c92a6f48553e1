import { Injectable, Logger } from '@nestjs/common';
import { Pool } from 'pg';
import { getErrorMessage } from '#platform/kernel/errors.js';
import { drawPollMs } from '#platform/kernel/poll-interval.js';
import { WakeSignal } from '#platform/kernel/wake-signal.js';
import { isDatabaseUnavailable, isTransient } from '#platform/database/connection.js';
import { ProcessSession } from '#platform/database/process-session.js';
import { readPosition } from '#platform/event-store/port/subscription-position.js';
import { EventStore } from '#platform/event-store/port/event-store.js';
import { parsePosition } from '#platform/event-store/port/position.js';
import { renderSubjectCondition } from '#outbound/public-events/event-subject.js';
import { withPartitions } from '#outbound/public-events/webhook-partitions.service.js';
import {
  FAN_OUT_SUBSCRIPTION,
  REPLAYS,
} from '#outbound/subscriptions/delivery-requests.service.js';
import { armQueues } from '#outbound/subscriptions/webhook-delivery.js';
import { DeliveryWorker } from './delivery-worker.service.js';

const ROUND_MS = 500;
/** The most deliveries enqueued, and events read, at a time. */
const BATCH_SIZES = { enqueued: 250, scanned: 2_000 };
/** A replay waits while its subscription has this many pending deliveries. */
const MAX_PENDING = 1_000;

/**
 * A delivery of an event that was just recorded gets its id in the same statement as the event, from the same sequence: at
 * most so many before or after, because PostgreSQL chooses which of the two it draws first.
 */
const MAX_ID_DISTANCE = 100_000;

/** Lists replays in the order in which they were requested. `log_head` is null once they are started. */
const OPEN = {
  name: 'webhook_replays_open',
  text: `select id, account_id, case when last_seq is null then log_head end as log_head from webhook_replays order by log_head, id`,
};

/**
 * Starts replays, which end at what has been enqueued up to now. Not while events of the store are postponed, which are
 * enqueued later.
 */
const START = {
  name: 'webhook_replays_start',
  text: `
    update webhook_replays r set last_seq = webhook_next_id()
    where r.id = any ($1) and r.last_seq is null and not exists (
      select from es.postponed_events p where p.subscription = $2 and p.account_id = r.account_id)`,
};

/**
 * Enqueues deliveries of a started replay: one that was extended meanwhile waits to be started anew. Removes the replay when
 * it is complete, or when its subscription was ended other than by a user; keeps it while the subscription is paused.
 */
export const FEED = {
  name: 'webhook_replay_feed',
  text: `
    with request as (
      select r.*, s.payload_format, s.card_ids, s.location_ids, coalesce(s.enabled, false) as enabled, s.disabled_reason
      from webhook_replays r left join webhook_subscriptions s on s.id = r.subscription_id
      where r.id = $1 and r.last_seq is not null for no key update of r skip locked
    ), room as (
      select least(${BATCH_SIZES.enqueued}, ${MAX_PENDING} - count(*)) as n from (
        select from webhook_pending p join request r on r.subscription_id = p.subscription_id
        limit ${MAX_PENDING}
      ) p
    ), scanned as (
      select e.* from request r cross join lateral (
        select * from webhook_events e
        where e.account_id = r.account_id and e.seq > r.after_seq and e.seq <= r.last_seq
        order by e.seq limit ${BATCH_SIZES.scanned}
      ) e
      where r.enabled and (select n from room) > 0
    ), known as (
      select d.event_seq from request r join webhook_deliveries d on d.subscription_id = r.subscription_id
        and d.id > (select min(seq) - ${MAX_ID_DISTANCE} from scanned)
        and d.id < (select max(seq) + ${MAX_ID_DISTANCE} from scanned)
      where r.fills_gap
    ), matching as (
      select e.* from scanned e join request r on e.recorded_at >= r.recorded_from and e.recorded_at < r.recorded_to
        and (r.types is null or e.type = any (r.types))
        and ${renderSubjectCondition('r.card_ids', 'r.location_ids')}
      where e.seq not in (select event_seq from known)
      order by e.seq limit (select n from room)
    ), enqueued as (
      insert into webhook_pending (id, subscription_id, event_seq, event_id, account_id, customer_id, stream,
        type, payload_format, next_attempt_at, created_at)
      select webhook_next_id(), f.* from (
        select r.subscription_id, f.seq, f.event_id, f.account_id, f.customer_id, f.stream, f.type,
          r.payload_format, clock_timestamp() as next_attempt_at, clock_timestamp() as created_at
        from matching f cross join request r order by f.seq
      ) f
    ), armed as (
      ${armQueues('select subscription_id from request where exists (select from matching)')}
    ), counts as (
      select n, (select count(*) from matching) as matching, (select max(seq) from matching) as last_matching,
        (select count(*) from scanned) as scanned, (select max(seq) from scanned) as last_scanned
      from room
    ), moved as (
      update webhook_replays r
      set after_seq = case when counts.matching = counts.n then counts.last_matching else counts.last_scanned end
      from counts, request
      where r.id = request.id and counts.n > 0
        and (counts.matching = counts.n or counts.scanned = ${BATCH_SIZES.scanned})
      returning r.id
    ), done as (
      delete from webhook_replays r using counts, request
      where r.id = request.id and case when request.enabled
        then counts.n > 0 and counts.matching < counts.n and counts.scanned < ${BATCH_SIZES.scanned}
        else request.disabled_reason is distinct from 'disabled_by_user' end
      returning r.id
    )
    select request.subscription_id, counts.matching > 0 as enqueued,
      exists (select from moved) or exists (select from done) as progress
    from request, counts`,
};

type OpenRow = { id: number; account_id: number; log_head: string | null };

type FeedRow = { subscription_id: number; enqueued: boolean; progress: boolean };

/**
 * Enqueues the deliveries of replays: a slice of one replay of each store in turn, and no more than its subscription can
 * take (ADR-0025). One dispatcher at a time does this, apart from everything else.
 */
@Injectable()
export class Replays {
  private readonly log = new Logger('webhook replays');
  /** Serves the replays of a store round robin. */
  private rounds = 0;
  private readonly requests = new WakeSignal();

  constructor(
    private readonly pool: Pool,
    private readonly events: EventStore,
    private readonly worker: DeliveryWorker,
    session: ProcessSession,
  ) {
    session.onDue(REPLAYS, () => this.requests.wake());
  }

  /** Runs until the signal aborts, whatever happens to the database. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      let waitMs = ROUND_MS;
      try {
        const { rows } = await this.pool.query<OpenRow>(OPEN);
        await this.startWaiting(rows);
        if (rows.length === 0) waitMs = drawPollMs();
        else if (await this.feedRound(rows, signal)) continue;
      } catch (error) {
        this.report(error);
      }
      await this.requests.wait(waitMs, signal);
    }
  }

  /**
   * Starts the replays for which every event recorded before the request has been enqueued. They are fed from the next
   * round on.
   */
  private async startWaiting(rows: OpenRow[]): Promise<void> {
    const waiting = rows.flatMap(({ id, log_head }) => (log_head === null ? [] : { id, log_head }));
    if (waiting.length === 0) return;
    const position = await readPosition(this.pool, FAN_OUT_SUBSCRIPTION);
    const ready: number[] = [];
    for (const { id, log_head } of waiting) {
      const notYetEnqueued = await this.events.readUntil(parsePosition(log_head), position, 1);
      // The others were requested later.
      if (notYetEnqueued.length > 0) break;
      ready.push(id);
    }
    if (ready.length === 0) return;
    const started = await this.pool.query({ ...START, values: [ready, FAN_OUT_SUBSCRIPTION] });
    if (started.rowCount) this.requests.wake();
  }

  /** @returns whether there may be more to do at once */
  private async feedRound(rows: OpenRow[], signal: AbortSignal): Promise<boolean> {
    const byStore = new Map<number, number[]>();
    for (const { id, account_id, log_head } of rows) {
      if (log_head !== null) continue;
      const others = byStore.get(account_id);
      if (others) others.push(id);
      else byStore.set(account_id, [id]);
    }
    let progress = false;
    for (const ids of byStore.values()) {
      const first = this.rounds % ids.length;
      for (const id of [...ids.slice(first), ...ids.slice(0, first)]) {
        if (signal.aborted) return false;
        if (!(await this.feedOrReport(id))) continue;
        progress = true;
        break;
      }
    }
    this.rounds++;
    return progress;
  }

  /** A replay that fails delays no other one. @returns whether it made any progress */
  private async feedOrReport(id: number): Promise<boolean> {
    try {
      return await this.feed(id);
    } catch (error) {
      if (isDatabaseUnavailable(error)) throw error;
      this.report(error, id);
      return false;
    }
  }

  private report(error: unknown, id?: number): void {
    const what = id === undefined ? '' : `replay ${id}: `;
    const level = isTransient(error) ? 'warn' : 'error';
    this.log[level](`${what}${getErrorMessage(error)}; will be tried again`);
  }

  private async feed(id: number): Promise<boolean> {
    const { rows } = await withPartitions(this.pool, () =>
      this.pool.query<FeedRow>({ ...FEED, values: [id] }),
    );
    const [fed] = rows;
    if (fed?.enqueued) this.worker.announce([fed.subscription_id]);
    return fed?.progress ?? false;
  }
}
