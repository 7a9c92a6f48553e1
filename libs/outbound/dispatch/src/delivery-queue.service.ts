import { Injectable } from '@nestjs/common';
import pg, { Pool } from 'pg';
import { Config } from '#kernel/config.js';
import { newId } from '#kernel/randomness.js';
import { deriveKey } from '#kernel/sealing.js';
import { auditBySystem } from '#database/audit-log.js';
import { inTransaction } from '#database/connection.js';
import { Batcher } from '#database/batcher.js';
import { PersonalKeys } from '#event-store/personal-keys.js';
import type { Pace, Queued } from './delivery-lane.js';
import type { FailingNotice } from './failing-notice.js';
import { FailingNotices } from './failing-notices.service.js';
import { DeliveryMetrics } from './delivery-metrics.service.js';
import type { Attempted } from '#sending/webhook.client.js';
import { excerptContext, FAILING_SECONDS, type Next } from '#subscriptions/webhook-delivery.js';
import { withPartitions } from '#public-events/webhook-partitions.service.js';
import { openSecret, SECRETS } from '#sending/webhook-secret.js';
import type { DisabledReason } from '#subscriptions/webhook-subscription.js';
import { errorOf } from '#sending/outcome.js';
import { type PayloadFormat } from '#public-events/public-event.js';

const LEASE_SECONDS = 30;
/** A lane in which something could not be worked on comes back after this long. */
const AFTER_TROUBLE_SECONDS = 30;
/** A dispatcher that has not been seen for this long does not count when work is shared. */
const GONE_SECONDS = 12;
const RECORDING = { groups: 4, ofGroup: 512 };
const GIVE_UP_AT_ONCE = 2_000;

export type Delivery = Queued & {
  subscriptionId: number;
  accountId: number;
  eventSeq: number;
  eventId: string;
  type: string;
  payloadFormat: PayloadFormat;
  firstAttemptAt: Date | null;
  createdAt: Date;
  /** When it was to be sent. */
  dueAt: Date;
  /** Of one that a person asked for; 0 of all others. */
  redeliveryId: number;
};

/** Where a lane's deliveries go, as of a moment ago. */
export type Target = {
  url: string;
  secret: string;
  previousSecret: string | undefined;
  enabled: boolean;
  disabledReason: DisabledReason | null;
  giveUpBefore: Date | null;
  failingSince: Date | null;
};

/** What a lane is about now. `target` is missing when the subscription was deleted. */
export type LaneView = {
  subscriptionId: number;
  /** Raised by whoever adds work; `release` refuses to let go of what is not known yet. */
  planned: number;
  redelivery: boolean;
  target: Target | undefined;
};

/** @property after the last first attempt that is known already */
export type Wanted = { subscriptionId: number; after: number; room: number; skip: number };

export type Release = {
  subscriptionId: number;
  planned: number;
  pace: Pace;
  /** Nothing of it may be sent until somebody says so, or not before a while. */
  hold: 'none' | 'parked' | 'trouble';
};

/** An attempt, or the reason why there was none, and what follows from it. */
export type Result = {
  delivery: Delivery;
  attempted: Attempted;
  /** Of a manual attempt only `delivered` and what becomes of the subscription count. */
  next: Next;
};

type Sealed = Result & { excerpt: Buffer | null };

type DeliveryRow = {
  id: number;
  subscription_id: number;
  account_id: number;
  customer_id: number;
  event_seq: number;
  event_id: string;
  type: string;
  payload_format: PayloadFormat;
  tries: number;
  first_attempt_at: Date | null;
  created_at: Date;
  due_at: Date;
  redelivery_id: number;
};

/** Of a lane whose lease had ended, `taken_over`: its owner has died, or could not renew it. */
type ClaimedRow = { subscription_id: number; pace: Pace; taken_over: boolean };

type ViewRow = {
  subscription_id: number;
  planned: number;
  redelivery: boolean;
  target_url: string | null;
  secret: Buffer;
  previous_secret: Buffer | null;
  enabled: boolean;
  disabled_reason: DisabledReason | null;
  give_up_before: Date | null;
  failing_since: Date | null;
};

/** Endpoints, not rows: what is claimed costs one write a lane, however much lies in it. */
const CLAIM = {
  name: 'webhook_lanes_claim',
  text: `
    with due as (
      select subscription_id, owner is not null as taken_over from webhook_lanes
      where due_at <= now() and due_at < 'infinity'
      order by due_at limit $2 for update skip locked
    )
    update webhook_lanes l set owner = $1, due_at = now() + interval '${LEASE_SECONDS} seconds'
    from due where l.subscription_id = due.subscription_id
    returning l.subscription_id, l.pace, due.taken_over`,
};

const NEXT_DUE = {
  name: 'webhook_lanes_next',
  text: `select (extract(epoch from min(due_at) - now()) * 1000)::float8 as ms
         from webhook_lanes where due_at > now() and due_at < 'infinity'`,
};

/** Whoever is named here still owns it. */
const VIEWS = {
  name: 'webhook_lanes_view',
  text: `
    select l.subscription_id, l.planned, s.target_url, s.secret,
      case when s.previous_secret_until > now() then s.previous_secret end as previous_secret,
      s.enabled, s.disabled_reason, s.give_up_before, s.failing_since,
      exists (select from webhook_redeliveries r where r.subscription_id = l.subscription_id) as redelivery
    from webhook_lanes l
    left join webhook_subscriptions s on s.id = l.subscription_id
    where l.subscription_id = any ($2) and l.owner = $1`,
};

const DELIVERY_COLUMNS = `p.id, p.subscription_id, p.account_id, p.customer_id, p.event_seq, p.event_id,
  p.type, p.payload_format, p.tries, p.first_attempt_at, p.created_at, p.next_attempt_at as due_at,
  0 as redelivery_id`;

/** Each lane's first attempts in order, and after them what is due again. */
const TAKE = {
  name: 'webhook_take',
  text: `
    select p.* from unnest($1::bigint[], $2::bigint[], $3::int[], $4::int[])
      as w (subscription_id, after, room, skip)
    cross join lateral (
      (select ${DELIVERY_COLUMNS} from webhook_pending p
       where p.subscription_id = w.subscription_id and p.tries = 0 and p.id > w.after
       order by p.id limit w.room)
      union all
      (select ${DELIVERY_COLUMNS} from webhook_pending p
       where p.subscription_id = w.subscription_id and p.tries > 0 and p.next_attempt_at <= now()
       order by p.next_attempt_at limit w.room + w.skip)
    ) p`,
};

const TAKE_REDELIVERIES = {
  name: 'webhook_take_redeliveries',
  text: `
    select d.id, d.subscription_id, d.account_id, d.customer_id, d.event_seq, d.event_id, d.type,
      d.payload_format, 0 as tries, null::timestamptz as first_attempt_at, d.created_at, r.created_at as due_at,
      r.id as redelivery_id
    from webhook_redeliveries r
    join webhook_deliveries d on d.subscription_id = r.subscription_id and d.id = r.delivery_id
    where r.subscription_id = any ($1) order by r.id limit 64`,
};

/** When each is next due is seen in the same moment in which it is let go of. */
const RELEASE = {
  name: 'webhook_lanes_release',
  text: `
    with mine as (
      select l.subscription_id, r.pace, r.hold
      from webhook_lanes l
      join unnest($2::bigint[], $3::bigint[], $4::text[], $5::text[]) as r (subscription_id, planned, pace, hold)
        on r.subscription_id = l.subscription_id and r.planned = l.planned
      where l.owner = $1
      order by l.subscription_id for no key update of l
    )
    update webhook_lanes l set owner = null, pace = mine.pace, due_at = case mine.hold
      when 'parked' then 'infinity'
      when 'trouble' then now() + interval '${AFTER_TROUBLE_SECONDS} seconds'
      else least(
        (select now() from webhook_pending p
         where p.subscription_id = l.subscription_id and p.tries = 0 limit 1),
        (select p.next_attempt_at from webhook_pending p
         where p.subscription_id = l.subscription_id and p.tries > 0
         order by p.next_attempt_at limit 1),
        (select now() from webhook_redeliveries r where r.subscription_id = l.subscription_id limit 1),
        'infinity') end
    from mine where l.subscription_id = mine.subscription_id
    returning l.subscription_id`,
};

const RENEW = {
  name: 'webhook_lanes_renew',
  text: `
    with mine as (
      select subscription_id from webhook_lanes where owner = $1
      order by subscription_id for no key update
    )
    update webhook_lanes l set due_at = now() + interval '${LEASE_SECONDS} seconds'
    from mine where l.subscription_id = mine.subscription_id
    returning l.subscription_id`,
};

const PRESENT = {
  name: 'webhook_dispatchers_present',
  text: `
    with seen as (
      insert into webhook_dispatchers (id, seen_at) values ($1, now())
      on conflict (id) do update set seen_at = now()
    ), forgotten as (
      delete from webhook_dispatchers where seen_at < now() - interval '5 minutes'
    )
    select (select count(*) from webhook_dispatchers
            where id <> $1 and seen_at > now() - interval '${GONE_SECONDS} seconds') as others,
      (select count(*) from webhook_lanes where owner is not null) as owned`,
};

/**
 * Scheduled attempts. A success always counts, even one of a lane that was lost meanwhile; anything else
 * only when nobody has recorded that attempt before. Never updated_at (contract section 9).
 */
const FINISH = {
  name: 'webhook_finish',
  text: `
    with r as (
      select subscription_id, id, tries, status, sent, code, duration_ms, error, excerpt,
        to_timestamp(next_attempt_at / 1000.0) as next_attempt_at, to_timestamp(at / 1000.0) as at,
        to_timestamp((at + duration_ms) / 1000.0) as done_at
      from unnest($1::bigint[], $2::bigint[], $3::int[], $4::text[], $5::float8[], $6::float8[], $7::boolean[],
        $8::int[], $9::int[], $10::text[], $11::bytea[])
      as r (subscription_id, id, tries, status, next_attempt_at, at, sent, code, duration_ms, error, excerpt)
    ), gone as (
      delete from webhook_pending p using r
      where p.subscription_id = r.subscription_id and p.id = r.id and r.status <> 'pending'
        and (p.tries = r.tries or r.status = 'delivered')
      returning p.*, r.status, r.sent, r.done_at
    ), finished as (
      insert into webhook_finished (id, subscription_id, event_seq, event_id, account_id, customer_id, type,
        payload_format, status, attempts_count, created_at, delivered_at)
      select id, subscription_id, event_seq, event_id, account_id, customer_id, type, payload_format,
        status, attempts_count + sent::int, created_at, case when status = 'delivered' then done_at end
      from gone
    ), again as (
      update webhook_pending p set tries = p.tries + 1, attempts_count = p.attempts_count + 1,
        first_attempt_at = coalesce(p.first_attempt_at, r.at), next_attempt_at = r.next_attempt_at
      from r
      where p.subscription_id = r.subscription_id and p.id = r.id and r.status = 'pending'
        and p.tries = r.tries
      returning p.id, p.attempts_count
    ), subscriptions as (
      update webhook_subscriptions s
      set failing_since = case when x.succeeded then to_timestamp(x.failing_since / 1000.0)
                               else coalesce(s.failing_since, to_timestamp(x.failing_since / 1000.0)) end,
        last_delivery_at = to_timestamp(x.at / 1000.0), last_delivery_status = x.code,
        last_delivery_error = x.error
      from unnest($12::bigint[], $13::boolean[], $14::float8[], $15::float8[], $16::int[], $17::text[])
        as x (id, succeeded, failing_since, at, code, error)
      where s.id = x.id
    )
    insert into webhook_attempts (delivery_id, attempt, kind, at, status, duration_ms, error, response_excerpt)
    select r.id, n.attempt, 'scheduled', r.at, r.code, r.duration_ms, r.error, r.excerpt
    from (select id, attempts_count + 1 as attempt from gone
          union all select id, attempts_count from again) n
    join r on r.id = n.id
    where r.sent`,
};

/** One that a person asked for, of a delivery that is still pending or long over. */
const FINISH_MANUAL = {
  name: 'webhook_finish_manual',
  text: `
    with asked as (
      delete from webhook_redeliveries where id = $1 returning id
    ), gone as (
      delete from webhook_pending p
      where p.subscription_id = $2 and p.id = $3 and $4::boolean and exists (select from asked)
      returning p.*
    ), moved as (
      insert into webhook_finished (id, subscription_id, event_seq, event_id, account_id, customer_id, type,
        payload_format, status, attempts_count, created_at, delivered_at)
      select id, subscription_id, event_seq, event_id, account_id, customer_id, type, payload_format,
        'delivered', attempts_count + 1, created_at, $6 from gone
    ), pending as (
      update webhook_pending p set attempts_count = p.attempts_count + 1
      where p.subscription_id = $2 and p.id = $3 and not $4::boolean and exists (select from asked)
      returning p.attempts_count
    ), finished as (
      update webhook_finished f set attempts_count = f.attempts_count + 1,
        status = case when $4::boolean then 'delivered' else f.status end,
        delivered_at = case when $4::boolean then coalesce(f.delivered_at, $6) else f.delivered_at end
      where f.subscription_id = $2 and f.id = $3 and exists (select from asked)
      returning f.attempts_count
    ), subscriptions as (
      update webhook_subscriptions s set last_delivery_at = $5, last_delivery_status = $7,
        last_delivery_error = $9, failing_since = case when $4::boolean then null else s.failing_since end
      where s.id = $2
    )
    insert into webhook_attempts (delivery_id, attempt, kind, at, status, duration_ms, error, response_excerpt)
    select $3, n.attempt, 'manual', $5, $7, $8, $9, $10
    from (select attempts_count + 1 as attempt from gone
          union all select attempts_count from pending
          union all select attempts_count from finished) n`,
};

const FORGET_REDELIVERY = {
  name: 'webhook_redelivery_forget',
  text: 'delete from webhook_redeliveries where id = $1',
};

/** What was planned too long ago, or before the end of its subscription, without an attempt. */
const GIVE_UP = {
  name: 'webhook_give_up',
  text: `
    with gone as (
      delete from webhook_pending p
      where p.subscription_id = $1 and p.id in (
        select id from webhook_pending where subscription_id = $1 and created_at < $2
        order by id limit ${GIVE_UP_AT_ONCE})
      returning p.*
    ), kept as (
      insert into webhook_finished (id, subscription_id, event_seq, event_id, account_id, customer_id, type,
        payload_format, status, attempts_count, created_at)
      select id, subscription_id, event_seq, event_id, account_id, customer_id, type, payload_format,
        'failed', attempts_count, created_at from gone
      where exists (select from webhook_subscriptions where id = $1)
    )
    select count(*) as n from gone`,
};

const FORGET_LANE = {
  name: 'webhook_lane_forget',
  text: `
    with forgotten as (delete from webhook_redeliveries where subscription_id = $2)
    delete from webhook_lanes l where l.subscription_id = $2 and l.owner = $1 and l.planned = $3`,
};

const AUDIT = auditBySystem('ended', {
  accountId: 'account_id',
  type: '$2',
  requestId: '$3',
  subject: "jsonb_build_object('webhook_subscription_id', id) || $4::jsonb",
});

/** The queue of deliveries, in lanes. A lane whose owner died is due again when its lease ends. */
@Injectable()
export class DeliveryQueue {
  /** This process among all dispatchers. */
  private readonly me = newId();
  private readonly secretKey: Buffer;
  /** Each subscription's in one of these: two groups at a time never change the same one. */
  private readonly recordings = Array.from(
    { length: RECORDING.groups },
    () =>
      new Batcher<Result, void>(1, RECORDING.ofGroup, (group) =>
        this.metrics.statement(
          'record',
          () => this.recordGroup(group),
          () => group.length,
        ),
      ),
  );

  constructor(
    private readonly pool: Pool,
    private readonly keys: PersonalKeys,
    private readonly notices: FailingNotices,
    private readonly metrics: DeliveryMetrics,
    private readonly config: Config,
  ) {
    this.secretKey = deriveKey(config.masterKey, SECRETS);
  }

  async claim(limit: number): Promise<{ subscriptionId: number; pace: Pace }[]> {
    const { rows } = await this.metrics.statement(
      'claim',
      () => this.pool.query<ClaimedRow>({ ...CLAIM, values: [this.me, limit] }),
      (answer) => answer.rows.length,
    );
    this.metrics.claimed(rows.length, rows.filter((row) => row.taken_over).length);
    return rows.map((row) => ({ subscriptionId: row.subscription_id, pace: row.pace }));
  }

  /** How long until a lane becomes due that is not so yet, or a lease ends. */
  async millisecondsToNext(): Promise<number | undefined> {
    const { rows } = await this.pool.query<{ ms: number | null }>(NEXT_DUE);
    return rows[0]?.ms ?? undefined;
  }

  /** Only of lanes that are still ours. To be asked before `take`: what is added later raises `planned`. */
  async views(subscriptionIds: number[]): Promise<LaneView[]> {
    const { rows } = await this.pool.query<ViewRow>({
      ...VIEWS,
      values: [this.me, subscriptionIds],
    });
    return rows.map((row) => this.viewOf(row));
  }

  async take(wanted: Wanted[]): Promise<Delivery[]> {
    const values = [
      wanted.map((one) => one.subscriptionId),
      wanted.map((one) => one.after),
      wanted.map((one) => one.room),
      wanted.map((one) => one.skip),
    ];
    const { rows } = await this.metrics.statement(
      'take',
      () => this.pool.query<DeliveryRow>({ ...TAKE, values }),
      (answer) => answer.rows.length,
    );
    return rows.map(deliveryOf);
  }

  async takeRedeliveries(subscriptionIds: number[]): Promise<Delivery[]> {
    const { rows } = await this.pool.query<DeliveryRow>({
      ...TAKE_REDELIVERIES,
      values: [subscriptionIds],
    });
    return rows.map(deliveryOf);
  }

  /** @returns those let go of; the others have got new work, or belong to somebody else */
  async release(lanes: Release[]): Promise<Set<number>> {
    const { rows } = await this.pool.query<{ subscription_id: number }>({
      ...RELEASE,
      values: [
        this.me,
        lanes.map((lane) => lane.subscriptionId),
        lanes.map((lane) => lane.planned),
        lanes.map((lane) => lane.pace),
        lanes.map((lane) => lane.hold),
      ],
    });
    return new Set(rows.map((row) => row.subscription_id));
  }

  /** Prolongs every lease of ours. @returns the lanes that are still ours */
  async renew(): Promise<Set<number>> {
    const { rows } = await this.pool.query<{ subscription_id: number }>({
      ...RENEW,
      values: [this.me],
    });
    return new Set(rows.map((row) => row.subscription_id));
  }

  /** @returns how many other dispatchers there are, and how many lanes all of them own together */
  async present(): Promise<{ others: number; owned: number }> {
    const { rows } = await this.pool.query<{ others: number; owned: number }>({
      ...PRESENT,
      values: [this.me],
    });
    return rows[0] ?? { others: 0, owned: 0 };
  }

  async leave(): Promise<void> {
    await this.pool.query('delete from webhook_dispatchers where id = $1', [this.me]);
  }

  /** Rejects only when the database refuses it or is away; then nothing was recorded. */
  async record(result: Result): Promise<void> {
    await this.recordings[result.delivery.subscriptionId % RECORDING.groups]?.add(result);
  }

  /** Fails some of what was planned before then. @returns whether there may be more */
  async giveUp(subscriptionId: number, before: Date | 'infinity'): Promise<boolean> {
    return withPartitions(this.pool, async () => {
      const { rows } = await this.pool.query<{ n: number }>({
        ...GIVE_UP,
        values: [subscriptionId, before],
      });
      this.metrics.gaveUp(rows[0]?.n ?? 0);
      return rows[0]?.n === GIVE_UP_AT_ONCE;
    });
  }

  /** Of a deleted subscription with nothing left in it. */
  async forget(subscriptionId: number, planned: number): Promise<void> {
    await this.pool.query({ ...FORGET_LANE, values: [this.me, subscriptionId, planned] });
  }

  private viewOf(row: ViewRow): LaneView {
    const { subscription_id: subscriptionId, planned, redelivery } = row;
    const opened = (sealed: Buffer) => openSecret(this.secretKey, subscriptionId, sealed);
    const target = row.target_url !== null && {
      url: row.target_url,
      secret: opened(row.secret),
      previousSecret: row.previous_secret === null ? undefined : opened(row.previous_secret),
      enabled: row.enabled,
      disabledReason: row.disabled_reason,
      giveUpBefore: row.give_up_before,
      failingSince: row.failing_since,
    };
    return { subscriptionId, planned, redelivery, target: target || undefined };
  }

  private async recordGroup(group: Result[]): Promise<PromiseSettledResult<void>[]> {
    const sealed = await this.sealExcerpts(group);
    const scheduled = sealed.filter(({ delivery }) => !delivery.manual);
    const manual = sealed.filter(({ delivery }) => delivery.manual);
    const ending = sealed.filter(({ next: { subscription } }) => ends(subscription));
    await withPartitions(this.pool, async () => {
      if (manual.length === 0 && ending.length === 0) {
        await this.pool.query({ ...FINISH, values: finishArguments(scheduled) });
        return;
      }
      const notices = await inTransaction(this.pool, async (client) => {
        if (scheduled.length > 0) {
          await client.query({ ...FINISH, values: finishArguments(scheduled) });
        }
        for (const one of manual) await finishManual(client, one);
        const told: FailingNotice[] = [];
        for (const one of ending) told.push(...(await this.endSubscription(client, one)));
        return told;
      });
      this.notices.logAll(notices);
    });
    return group.map(() => ({ status: 'fulfilled', value: undefined }));
  }

  private async sealExcerpts(group: Result[]): Promise<Sealed[]> {
    const excerpts = await this.keys.sealAll(
      group.map(({ delivery, attempted: { excerpt } }) => ({
        customerId: delivery.customerId,
        plain: excerpt === null ? null : Buffer.from(excerpt),
        context: excerptContext(delivery.id),
      })),
    );
    return group.map((result, i) => ({ ...result, excerpt: excerpts[i] ?? null }));
  }

  /** Gone by 410, or disabled; either way what is pending is over (contract section 9). */
  private async endSubscription(
    client: pg.PoolClient,
    { delivery, attempted, next: { subscription } }: Result,
  ): Promise<FailingNotice[]> {
    const { subscriptionId, eventId } = delivery;
    if (!subscription.kept) {
      await client.query(
        `with ended as (delete from webhook_subscriptions where id = $1 returning id, account_id)
         ${AUDIT}`,
        [
          subscriptionId,
          'webhook_subscription.deleted',
          newId(),
          { status: 410, event_id: eventId },
        ],
      );
    } else if ('disabled' in subscription) {
      const { disabled: reason } = subscription;
      const failingMs = (FAILING_SECONDS * 1000) / this.config.webhookTimeScale;
      const at = doneAt(attempted);
      // Enabled anew meanwhile, it is not failing any more.
      const { rowCount } = await client.query(
        `with ended as (
           update webhook_subscriptions set enabled = false, disabled_at = $5, disabled_reason = $6,
             give_up_before = now()
           where id = $1 and enabled and ($6 <> 'failing' or failing_since <= $7)
           returning id, account_id
         )
         ${AUDIT}`,
        [
          subscriptionId,
          'webhook_subscription.disabled',
          newId(),
          { reason, event_id: eventId },
          at,
          reason,
          new Date(at.getTime() - failingMs),
        ],
      );
      if (rowCount) return this.notices.write(client, 'disabled', [subscriptionId]);
    }
    return [];
  }
}

function ends(subscription: Next['subscription']): boolean {
  return !subscription.kept || 'disabled' in subscription;
}

async function finishManual(client: pg.PoolClient, result: Sealed): Promise<void> {
  const { delivery, attempted, next, excerpt } = result;
  if (attempted.outcome.kind === 'erased') {
    await client.query({ ...FORGET_REDELIVERY, values: [delivery.redeliveryId] });
    return;
  }
  await client.query({
    ...FINISH_MANUAL,
    values: [
      delivery.redeliveryId,
      delivery.subscriptionId,
      delivery.id,
      next.delivery.status === 'delivered',
      attempted.at,
      doneAt(attempted),
      statusOf(attempted),
      attempted.durationMs,
      errorOf(attempted.outcome),
      excerpt,
    ],
  });
}

function finishArguments(results: Sealed[]): unknown[] {
  const states = subscriptionStates(results);
  return [
    plainArray(results, ({ delivery }) => delivery.subscriptionId),
    plainArray(results, ({ delivery }) => delivery.id),
    plainArray(results, ({ delivery }) => delivery.tries),
    plainArray(results, ({ next }) => next.delivery.status),
    plainArray(results, ({ next }) =>
      next.delivery.status === 'pending' ? next.delivery.nextAttemptAt.getTime() : null,
    ),
    plainArray(results, ({ attempted }) => attempted.at.getTime()),
    plainArray(results, wasTried),
    plainArray(results, ({ attempted }) => statusOf(attempted)),
    plainArray(results, ({ attempted }) => attempted.durationMs),
    results.map(({ attempted }) => errorOf(attempted.outcome)),
    results.map(({ excerpt }) => excerpt),
    plainArray(states, ({ id }) => id),
    plainArray(states, ({ succeeded }) => succeeded),
    plainArray(states, ({ failingSince }) => failingSince?.getTime() ?? null),
    plainArray(states, ({ newest }) => newest.attempted.at.getTime()),
    plainArray(states, ({ newest }) => statusOf(newest.attempted)),
    states.map(({ newest }) => errorOf(newest.attempted.outcome)),
  ];
}

/** As PostgreSQL writes it: what the driver does for each value is too much for thousands a second. */
function plainArray<T>(
  items: T[],
  value: (item: T) => number | boolean | Next['delivery']['status'] | null,
): string {
  return `{${items.map((item) => value(item) ?? 'null').join()}}`;
}

type SubscriptionChange = {
  id: number;
  /** Whether any succeeded; `failingSince` is then since the last success, otherwise since the first failure. */
  succeeded: boolean;
  failingSince: Date | null;
  newest: Result;
};

/** One change a subscription, however many of its attempts are in the group. */
function subscriptionStates(results: Sealed[]): SubscriptionChange[] {
  const states = new Map<number, SubscriptionChange>();
  for (const result of results) {
    if (!wasTried(result)) continue;
    const { delivery, attempted, next } = result;
    const id = delivery.subscriptionId;
    const state = states.get(id) ?? { id, succeeded: false, failingSince: null, newest: result };
    state.newest = result;
    if (next.delivery.status === 'delivered') {
      state.succeeded = true;
      state.failingSince = null;
    } else state.failingSince ??= doneAt(attempted);
    states.set(id, state);
  }
  return [...states.values()];
}

function wasTried({ attempted }: Result): boolean {
  return attempted.outcome.kind !== 'erased';
}

function statusOf({ outcome }: Attempted): number | null {
  return outcome.kind === 'answered' ? outcome.status : null;
}

export function doneAt({ at, durationMs }: Attempted): Date {
  return new Date(at.getTime() + durationMs);
}

function deliveryOf(row: DeliveryRow): Delivery {
  return {
    id: row.id,
    subscriptionId: row.subscription_id,
    accountId: row.account_id,
    customerId: row.customer_id,
    eventSeq: row.event_seq,
    eventId: row.event_id,
    type: row.type,
    payloadFormat: row.payload_format,
    tries: row.tries,
    manual: row.redelivery_id !== 0,
    firstAttemptAt: row.first_attempt_at,
    createdAt: row.created_at,
    dueAt: row.due_at,
    redeliveryId: row.redelivery_id,
  };
}
