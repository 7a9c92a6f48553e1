import { Inject, Injectable, Logger } from '@nestjs/common';
import type pg from 'pg';
import { DataSource } from 'typeorm';
import { newId } from '#kernel/randomness.js';
import type { Config } from '#kernel/config.js';
import { deriveKey } from '#kernel/sealing.js';
import { inTransaction } from '#database/connection.js';
import { poolOf } from '#database/data-source.js';
import { CONFIG } from '#database/database.module.js';
import { Lanes } from '#event-store/lanes.js';
import { PersonalKeys } from '#event-store/personal-keys.js';
import { bodyOf } from './public-events.js';
import type { Attempt, Attempted } from './webhook.client.js';
import { afterAttempt, errorOf, type Next } from './webhook-delivery.js';
import { openSecret, SECRETS } from './webhook-secret.js';
import type { PayloadFormat } from './webhook-subscription.js';

const LEASE_SECONDS = 30;
const RECORDING = { lanes: 2, group: 64 };

type ClaimedRow = {
  id: number;
  subscription_id: number;
  event_id: string;
  customer_id: number;
  payload_format: PayloadFormat;
  attempts_count: number;
  first_attempt_at: Date | null;
  account_id: number;
  type: string;
  body: Buffer;
  target_url: string;
  secret: Buffer;
};

export type Claimed = {
  id: number;
  subscriptionId: number;
  accountId: number;
  customerId: number;
  attemptsCount: number;
  firstAttemptAt: Date | null;
  /** Missing when the person was erased: then there is nothing that may be sent. */
  attempt: Attempt | undefined;
};

type Recording = { claimed: Claimed; attempted: Attempted; excerpt: Buffer | null };

type Judged = Recording & { next: Next; error: string | null };

type SubscriptionRow = { id: number; failing_since: Date | null };

/** Due, not waiting for its turn, and not leased to anybody. */
const CLAIM = {
  name: 'webhook_claim',
  text: `
    with due as (
      select d.id from webhook_deliveries d
      join webhook_subscriptions s on s.id = d.subscription_id and s.enabled
      where d.status = 'pending' and not d.waiting and d.next_attempt_at <= now()
        and (d.leased_until is null or d.leased_until < now())
        and d.id <> all ($2::bigint[])
      order by d.next_attempt_at, d.id
      limit $1
      for update of d skip locked
    ), leased as (
      update webhook_deliveries d set leased_until = now() + interval '${LEASE_SECONDS} seconds'
      from due where d.id = due.id
      returning d.id, d.subscription_id, d.event_id, d.customer_id, d.payload_format,
        d.attempts_count, d.first_attempt_at
    )
    select l.*, s.account_id, s.target_url, s.secret, e.type, e.body
    from leased l
    join webhook_subscriptions s on s.id = l.subscription_id
    join webhook_events e on e.id = l.event_id
    order by l.id`,
};

const NEXT_DUE = {
  name: 'webhook_next_due',
  text: `select (extract(epoch from min(next_attempt_at) - now()) * 1000)::float8 as ms
         from webhook_deliveries
         where status = 'pending' and not waiting and next_attempt_at > now()`,
};

/** A success always counts, even one of a lease that ran out; a failure only of the lease's holder. */
const FINISH = {
  name: 'webhook_finish',
  text: `
    with finished as (
      update webhook_deliveries d
      set status = r.status, next_attempt_at = r.next_attempt_at, leased_until = null,
        waiting = false,
        attempts_count = case when r.sent then r.attempt else d.attempts_count end,
        first_attempt_at = case when r.sent then coalesce(d.first_attempt_at, r.at)
                                else d.first_attempt_at end,
        delivered_at = case when r.status = 'delivered' then r.done_at end
      from unnest($1::bigint[], $2::int[], $3::text[], $4::timestamptz[], $5::timestamptz[],
                  $6::timestamptz[], $7::boolean[])
        as r (id, attempt, status, next_attempt_at, at, done_at, sent)
      where d.id = r.id
        and (d.status = 'pending' and d.attempts_count = r.attempt - 1
          or d.status <> 'delivered' and r.status = 'delivered')
      returning d.id
    )
    insert into webhook_attempts
      (delivery_id, attempt, kind, at, status, duration_ms, error, response_excerpt)
    select r.id, r.attempt, 'scheduled', r.at, r.code, r.duration, r.error, r.excerpt
    from unnest($1::bigint[], $2::int[], $5::timestamptz[], $7::boolean[], $8::int[], $9::int[],
                $10::text[], $11::bytea[])
      as r (id, attempt, at, sent, code, duration, error, excerpt)
    join finished on finished.id = r.id
    where r.sent
    on conflict do nothing`,
};

/**
 * First attempts to one subscription about one customer go one after the other (contract section 10):
 * the first of those not yet tried is let go. Fan-out decides who waits under the same lock on the
 * subscription, so that neither overlooks what the other is just writing.
 */
const RELEASE = {
  name: 'webhook_release',
  text: `
    update webhook_deliveries w set waiting = false
    from (select distinct * from unnest($1::bigint[], $2::bigint[])) as r (subscription_id, customer_id)
    where w.waiting and w.id = (
      select e.id from webhook_deliveries e
      where e.subscription_id = r.subscription_id and e.customer_id = r.customer_id
        and e.status = 'pending' and e.attempts_count = 0
      order by e.id limit 1)`,
};

const SUBSCRIPTIONS_LOCK = {
  name: 'webhook_subscriptions_lock',
  text: `select id, failing_since from webhook_subscriptions where id = any ($1) order by id
         for no key update`,
};

/** Never updated_at (contract section 9). */
const SUBSCRIPTIONS_UPDATE = {
  name: 'webhook_subscriptions_update',
  text: `
    update webhook_subscriptions s
    set failing_since = r.failing_since, last_delivery_at = r.at, last_delivery_status = r.code,
      last_delivery_error = r.error
    from unnest($1::bigint[], $2::timestamptz[], $3::timestamptz[], $4::int[], $5::text[])
      as r (id, failing_since, at, code, error)
    where s.id = r.id`,
};

export function bodyContext(eventId: string): string {
  return `webhook body ${eventId}`;
}

/** The leased queue of deliveries. What is leased by a process that died is due again when the lease ends. */
@Injectable()
export class DeliveryQueue {
  private readonly log = new Logger('webhook deliveries');
  private readonly pool: pg.Pool;
  private readonly secretKey: Buffer;
  private readonly recordings = new Lanes<Recording, void>(
    RECORDING.lanes,
    RECORDING.group,
    (group) => this.recordGroup(group),
  );

  constructor(
    source: DataSource,
    private readonly keys: PersonalKeys,
    @Inject(CONFIG) private readonly config: Config,
  ) {
    this.pool = poolOf(source);
    this.secretKey = deriveKey(config.masterKey, SECRETS);
  }

  /** @param except what this process is still busy with, though its lease may have ended */
  async claim(limit: number, except: number[]): Promise<Claimed[]> {
    const { rows } = await this.pool.query<ClaimedRow>({ ...CLAIM, values: [limit, except] });
    await this.keys.load(rows.map((row) => row.customer_id));
    const opened = await Promise.allSettled(rows.map((row) => this.claimedOf(row)));
    return opened.flatMap((result, i) => {
      if (result.status === 'fulfilled') return [result.value];
      // It stays leased and comes again; the others must not wait for it.
      this.log.error(`delivery ${rows[i]?.id} cannot be opened: ${String(result.reason)}`);
      return [];
    });
  }

  /** How long until a delivery becomes due that is not so yet. */
  async millisecondsToNext(): Promise<number | undefined> {
    const { rows } = await this.pool.query<{ ms: number | null }>(NEXT_DUE);
    return rows[0]?.ms ?? undefined;
  }

  /** Rejects only when the database refuses it or is away; then nothing was recorded. */
  async record(claimed: Claimed, attempted: Attempted): Promise<void> {
    const { excerpt: text } = attempted;
    const excerpt = text === null ? null : await this.sealedExcerpt(claimed, text);
    await this.recordings.add({ claimed, attempted, excerpt });
  }

  private async claimedOf(row: ClaimedRow): Promise<Claimed> {
    const text = await this.keys.openText(row.customer_id, row.body, bodyContext(row.event_id));
    return {
      id: row.id,
      subscriptionId: row.subscription_id,
      accountId: row.account_id,
      customerId: row.customer_id,
      attemptsCount: row.attempts_count,
      firstAttemptAt: row.first_attempt_at,
      attempt: text === undefined ? undefined : this.attemptOf(row, text),
    };
  }

  private attemptOf(row: ClaimedRow, envelopeText: string): Attempt {
    return {
      url: row.target_url,
      secret: openSecret(this.secretKey, row.subscription_id, row.secret),
      eventId: row.event_id,
      type: row.type,
      body: bodyOf(envelopeText, row.payload_format),
    };
  }

  private async sealedExcerpt(claimed: Claimed, text: string): Promise<Buffer | null> {
    const context = `webhook attempt ${claimed.id} ${claimed.attemptsCount + 1}`;
    return (await this.keys.sealText(claimed.customerId, text, context)) ?? null;
  }

  private async recordGroup(group: Recording[]): Promise<PromiseSettledResult<void>[]> {
    await inTransaction(this.pool, (client) => this.recordIn(client, group));
    return group.map(() => ({ status: 'fulfilled', value: undefined }));
  }

  private async recordIn(client: pg.PoolClient, group: Recording[]): Promise<void> {
    const ids = [...new Set(group.map(({ claimed }) => claimed.subscriptionId))];
    const { rows } = await client.query<SubscriptionRow>({ ...SUBSCRIPTIONS_LOCK, values: [ids] });
    const failingSince = new Map(rows.map((row) => [row.id, row.failing_since]));
    const judged = this.judge(group, failingSince);
    await client.query({ ...FINISH, values: finishArguments(judged) });
    const first = judged.filter(({ claimed }) => claimed.attemptsCount === 0);
    if (first.length > 0) {
      await client.query({
        ...RELEASE,
        values: [
          first.map(({ claimed }) => claimed.subscriptionId),
          first.map(({ claimed }) => claimed.customerId),
        ],
      });
    }
    const newest = newestOfEach(judged);
    if (newest.length > 0) {
      await client.query({
        ...SUBSCRIPTIONS_UPDATE,
        values: [
          newest.map(({ claimed }) => claimed.subscriptionId),
          newest.map(({ claimed }) => failingSince.get(claimed.subscriptionId) ?? null),
          newest.map(({ attempted }) => attempted.at),
          newest.map(({ attempted }) => statusOf(attempted)),
          newest.map(({ error }) => error),
        ],
      });
    }
    await endSubscriptions(client, judged);
  }

  /** In the order of the attempts, each seeing what the one before left of its subscription. */
  private judge(group: Recording[], failingSince: Map<number, Date | null>): Judged[] {
    const inOrder = [...group].sort((a, b) => doneAt(a).getTime() - doneAt(b).getTime());
    return inOrder.map((recording) => {
      const { claimed, attempted } = recording;
      const next = afterAttempt(
        claimed,
        { failingSince: failingSince.get(claimed.subscriptionId) ?? null },
        attempted.outcome,
        doneAt(recording),
        Math.random(),
        this.config.webhookTimeScale,
      );
      if (next.subscription.kept) {
        failingSince.set(claimed.subscriptionId, next.subscription.failingSince);
      }
      return { ...recording, next, error: errorOf(attempted.outcome) };
    });
  }
}

/** Gone by 410, or disabled; either way what is pending is over (contract section 9). */
async function endSubscriptions(client: pg.PoolClient, judged: Judged[]): Promise<void> {
  for (const { claimed, attempted, next } of judged) {
    const eventId = claimed.attempt?.eventId;
    if (!next.subscription.kept) {
      await client.query(
        `with ended as (delete from webhook_subscriptions where id = $1 returning id, account_id)
         ${AUDIT}`,
        [
          claimed.subscriptionId,
          'webhook_subscription.deleted',
          newId(),
          { status: 410, event_id: eventId },
        ],
      );
    } else if ('disabled' in next.subscription) {
      const { disabled: reason } = next.subscription;
      await client.query(
        `with ended as (
           update webhook_subscriptions set enabled = false, disabled_at = $5, disabled_reason = $6
           where id = $1 and enabled returning id, account_id
         ), over as (
           update webhook_deliveries d set status = 'failed', next_attempt_at = null, leased_until = null
           from ended where d.subscription_id = ended.id and d.status = 'pending'
         )
         ${AUDIT}`,
        [
          claimed.subscriptionId,
          'webhook_subscription.disabled',
          newId(),
          { reason, event_id: eventId },
          doneAt({ attempted }),
          reason,
        ],
      );
    }
  }
}

const AUDIT = `
  insert into audit_log (account_id, type, actor, channel, request_id, subject, recorded_at)
  select account_id, $2, '{"type": "system", "id": 0}', 'system', $3,
    jsonb_build_object('webhook_subscription_id', id) || $4::jsonb, now()
  from ended`;

function finishArguments(judged: Judged[]): unknown[] {
  const each = <T>(value: (one: Judged) => T) => judged.map(value);
  return [
    each(({ claimed }) => claimed.id),
    each(({ claimed }) => claimed.attemptsCount + 1),
    each(({ next }) => next.delivery.status),
    each(({ next }) => (next.delivery.status === 'pending' ? next.delivery.nextAttemptAt : null)),
    each(({ attempted }) => attempted.at),
    each(doneAt),
    each(wasTried),
    each(({ attempted }) => statusOf(attempted)),
    each(({ attempted }) => attempted.durationMs),
    each(({ error }) => error),
    each(({ excerpt }) => excerpt),
  ];
}

function newestOfEach(judged: Judged[]): Judged[] {
  const newest = new Map<number, Judged>();
  for (const one of judged) if (wasTried(one)) newest.set(one.claimed.subscriptionId, one);
  return [...newest.values()];
}

function wasTried({ attempted }: Recording): boolean {
  return attempted.outcome.kind !== 'erased';
}

function statusOf({ outcome }: Attempted): number | null {
  return outcome.kind === 'answered' ? outcome.status : null;
}

function doneAt({ attempted }: Pick<Recording, 'attempted'>): Date {
  return new Date(attempted.at.getTime() + attempted.durationMs);
}
