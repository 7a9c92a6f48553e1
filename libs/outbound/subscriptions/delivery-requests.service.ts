import { Injectable, Logger } from '@nestjs/common';
import { Pool } from 'pg';
import type { EntityManager } from 'typeorm';
import { getErrorMessage, RejectedError, UnavailableError } from '#platform/kernel/errors.js';
import { query } from '#platform/database/connection.js';
import { announceDue } from '#platform/database/process-session.js';
import {
  BEGINNING,
  EventStore,
  type Position,
  type StoredEvent,
} from '#platform/event-store/port/event-store.js';
import { EventTypes } from '#platform/event-store/port/event-types.js';
import { readPostponed } from '#platform/event-store/port/subscription-position.js';
import { formatPosition, parsePosition } from '#platform/event-store/port/position.js';
import {
  matchesSubject,
  renderSubjectCondition,
  type EventSubject,
  type SubjectFilter,
} from '#outbound/public-events/event-subject.js';
import { EventSubjects } from '#outbound/public-events/event-subjects.service.js';
import { findPublicType, type PublicEventType } from '#outbound/public-events/public-events.js';
import { armQueues } from './webhook-delivery.js';
import { WorkHints } from './work-hints.service.js';
import { ISSUES } from '#translations/issues.js';

/** The subscription that enqueues the deliveries of each event. */
export const FAN_OUT_SUBSCRIPTION = 'webhooks';

/** The table of replays, of which new ones are announced. */
export const REPLAYS = 'webhook_replays';

/** A request for the events that were recorded in a period. */
export type Replay = {
  subscriptionId: number;
  accountId: number;
  from: Date;
  /** Exclusive. */
  to: Date;
  /** Null means all. */
  types: PublicEventType[] | null;
  /** The head of the log at the time of the request. */
  head: Position;
  /** Whether events of which the subscription has a delivery are left out. */
  fillsGap: boolean;
};

/** What is counted of a replay. */
type Matching = Pick<Replay, 'accountId' | 'from' | 'to' | 'types' | 'head'> & SubjectFilter;

/** Thrown for a replay while the subscription has an open one. */
export class ReplayRunningError extends RejectedError {
  constructor() {
    super(
      { base: [ISSUES.replay_running] },
      'validation_failed',
      'Wait until its deliveries have been enqueued, then send the request again.',
    );
  }
}

const UNREAD = { pageSize: 500, total: 50_000 };

const ARM = armQueues('values ($1::bigint)');

const REDELIVER = `
  with asked as (
    insert into webhook_redeliveries (subscription_id, delivery_id, created_at) values ($1, $2, now())
    on conflict (subscription_id, delivery_id) do nothing
  ) ${ARM}`;

/** Selects a delivery whose body is stored, or at least the event's position in the history. */
const CAN_BE_SENT = `
  select 1 from webhook_deliveries d
  where d.subscription_id = $1 and d.id = $2 and (
    exists (select from webhook_bodies b where b.seq = d.event_seq)
    or exists (select from webhook_events e
               where e.account_id = d.account_id and e.seq = d.event_seq))`;

/**
 * Counts the events of a replay. An event is never enqueued before it is recorded, and ids sort by the time of
 * enqueuing; the day allows for clocks that differ.
 */
const COUNT_MATCHING = {
  name: 'webhook_replay_matched',
  text: `
    select count(*) as n, (select position from es.positions where subscription = $5) as position
    from webhook_events e
    where e.account_id = $1 and e.seq >= webhook_first_id($2::timestamptz - interval '1 day')
      and e.recorded_at >= $2 and e.recorded_at < $3 and ($4::text[] is null or e.type = any ($4))
      and ${renderSubjectCondition('$6::bigint[]', '$7::bigint[]')}`,
};

const REPLAY = `
  insert into webhook_replays (subscription_id, account_id, recorded_from, recorded_to, types, after_seq, log_head,
    request, fills_gap, created_at)
  select $1, $2, $3, $4, $5, webhook_first_id($3::timestamptz - interval '1 day') - 1, $6, $7, $8, now()
  where not exists (select from webhook_replays where subscription_id = $1 and fills_gap = $8)
  returning id, ${announceDue(REPLAYS)}`;

/** Extends the open replay of an earlier gap to a later one. What lies between was sent, and is left out. */
const EXTEND = `
  update webhook_replays set recorded_to = $2, types = $3, log_head = $4, last_seq = null
  where subscription_id = $1 and fills_gap
  returning id, ${announceDue(REPLAYS)}`;

const MAX_SPANS = 100;

/** Records an active span. A subscription with more than `MAX_SPANS` also gets the events between its last spans. */
const PAUSE = `
  with extended as (
    update webhook_active_spans set active_until = $2
    where id = (select max(id) from webhook_active_spans where subscription_id = $1)
      and (select count(*) from webhook_active_spans where subscription_id = $1) >= ${MAX_SPANS}
    returning id
  )
  insert into webhook_active_spans (subscription_id, active_from, active_until)
  select id, active_from, $2 from webhook_subscriptions
  where id = $1 and active_from < $2 and not exists (select from extended)`;

/** Stores the work that the api hands to dispatchers, so that it survives a crash of any process. */
@Injectable()
export class DeliveryRequests {
  private readonly log = new Logger('webhook deliveries');

  constructor(
    private readonly pool: Pool,
    private readonly hints: WorkHints,
    private readonly eventStore: EventStore,
    private readonly types: EventTypes,
    private readonly subjects: EventSubjects,
  ) {}

  /**
   * Tells dispatchers that a subscription has changed or ended, so that enqueued deliveries follow the new state. Never
   * throws, because the change is committed; if this fails, the sweep finds it a little later.
   */
  async announceChange(subscriptionId: number): Promise<void> {
    try {
      await query(this.pool, { name: 'webhook_queue_arm', text: ARM, values: [subscriptionId] });
      await this.hints.notifyAbout(subscriptionId);
    } catch (error) {
      this.log.warn(
        `dispatchers will notice a changed subscription later: ${getErrorMessage(error)}`,
        {
          subscription_id: subscriptionId,
        },
      );
    }
  }

  /** Tells whether the delivery's event can still be sent; its day may have been dropped. */
  async canBeSent(subscriptionId: number, deliveryId: number): Promise<boolean> {
    const values = [subscriptionId, deliveryId];
    return (
      (await query(this.pool, { name: 'webhook_event_kept', text: CAN_BE_SENT, values })).length > 0
    );
  }

  /**
   * Enqueues one manual attempt at once. It does not count in the schedule, but its success marks the delivery as
   * delivered, and a 410 deletes the subscription. When requested twice before it is made, it is made once.
   */
  async redeliver(
    manager: EntityManager,
    subscriptionId: number,
    deliveryId: number,
  ): Promise<void> {
    await query(manager, REDELIVER, [subscriptionId, deliveryId]);
  }

  /** Tells dispatchers about new work. Call it after the commit. */
  async announce(subscriptionId: number): Promise<void> {
    await this.hints.notifyAbout(subscriptionId);
  }

  /**
   * Records the end of an active span, in the transaction that pauses a subscription: events recorded up to now are
   * sent after the resume, even those that are not enqueued yet.
   * @param head the log's position
   */
  async pause(manager: EntityManager, subscriptionId: number, head: string): Promise<void> {
    await query(manager, PAUSE, [subscriptionId, head]);
  }

  /**
   * Counts the store's public events in a replay: those that are kept, and those that are not enqueued yet, postponed or
   * not. An event that is enqueued meanwhile may count twice, and never not at all.
   * @throws UnavailableError when too many are not enqueued yet to be counted
   */
  async countMatching(replay: Matching): Promise<number> {
    const { accountId, from, to, types, head, cardIds, locationIds } = replay;
    const postponed = await readPostponed(this.pool, FAN_OUT_SUBSCRIPTION, {
      accountId,
      limit: UNREAD.total,
    });
    const [row] = await query<{ n: number; position: string | null }>(this.pool, {
      ...COUNT_MATCHING,
      values: [accountId, from, to, types, FAN_OUT_SUBSCRIPTION, cardIds, locationIds],
    });
    let matchingCount = row?.n ?? 0;
    for (let first = 0; first < postponed.length; first += UNREAD.pageSize) {
      const page = postponed.slice(first, first + UNREAD.pageSize);
      matchingCount += await this.countAmong(await this.eventStore.readEvents(page), replay);
    }
    let after = row?.position ? parsePosition(row.position) : BEGINNING;
    for (let read = postponed.length; read < UNREAD.total; read += UNREAD.pageSize) {
      const events = await this.eventStore.readUntil(head, after, UNREAD.pageSize);
      matchingCount += await this.countAmong(events, replay);
      const last = events.at(-1);
      if (!last || events.length < UNREAD.pageSize) return matchingCount;
      after = last.position;
    }
    throw new UnavailableError('Webhooks are currently far behind the history');
  }

  /**
   * Requests a delivery of each public event of the store in the period that is still kept, under its original id.
   * Includes events from before the subscription was created and from while it was disabled. The caller holds a lock on
   * the subscription.
   * @param request the same when the request is repeated after an unknown outcome
   * @returns false when the subscription already has an open replay; never for one that fills a gap
   */
  async replay(manager: EntityManager, replay: Replay, request: string): Promise<boolean> {
    const { subscriptionId, accountId, from, to, types, head, fillsGap } = replay;
    const position = formatPosition(head);
    const values = [subscriptionId, accountId, from, to, types, position, request, fillsGap];
    // First, as an open replay may end meanwhile.
    const extension = [subscriptionId, to, types, position];
    if (fillsGap && (await query(manager, EXTEND, extension)).length > 0) return true;
    const opened = await query(manager, REPLAY, values);
    if (opened.length > 0) return true;
    const existing = await query(manager, {
      text: 'select from webhook_replays where request = $1',
      values: [request],
    });
    return existing.length > 0;
  }

  private async countAmong(events: StoredEvent[], replay: Matching): Promise<number> {
    const candidates = events.filter((event) => this.isMatch(event, replay));
    const subjects = await this.subjects.find(candidates, [replay]);
    return candidates.filter(({ id }) => isAbout(subjects.get(id), replay)).length;
  }

  private isMatch({ type, meta }: StoredEvent, { accountId, from, to, types }: Matching): boolean {
    const publicType = findPublicType(this.types, type);
    const recordedAt = new Date(meta.recordedAt);
    return (
      publicType !== undefined &&
      meta.accountId === accountId &&
      (types === null || types.includes(publicType)) &&
      recordedAt >= from &&
      recordedAt < to
    );
  }
}

function isAbout(subject: EventSubject | undefined, filter: SubjectFilter): boolean {
  return subject !== undefined && matchesSubject(filter, subject);
}
