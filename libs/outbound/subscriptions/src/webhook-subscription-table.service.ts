import { Injectable } from '@nestjs/common';
import { setTimeout as wait } from 'node:timers/promises';
import pg from 'pg';
import type { CommandContext } from '#kernel/aggregate.js';
import { NotFoundError, UnknownOutcomeError } from '#kernel/errors.js';
import { writeAuditEntry } from '#database/audit-log.js';
import {
  ask,
  inTransaction,
  isConnectionLoss,
  isDatabaseUnavailable,
} from '#database/connection.js';
import { Outcomes } from '#event-store/outcomes.js';
import {
  SUBSCRIPTION_COLUMNS,
  subscriptionOf,
  type WebhookSubscriptionRow,
} from './webhook-subscription.entity.js';
import type { WebhookSubscription } from './webhook-subscription.js';

const SETTLE_WITHIN_MS = 30_000;
const SETTLE_EVERY_MS = 250;

const FIND = `select ${SUBSCRIPTION_COLUMNS} from webhook_subscriptions
  where id = $1 and account_id = $2`;

/** The plain rows of subscriptions: every write is one transaction with its audit entry. */
@Injectable()
export class WebhookSubscriptionTable {
  constructor(
    private readonly pool: pg.Pool,
    private readonly outcomes: Outcomes,
  ) {}

  /**
   * The answer is kept in the same transaction when the request has an Idempotency-Key. A connection
   * lost on the way leaves open whether it was committed; all work ends the same when it is done again,
   * so that settles it.
   * @param work is told whether it may have been done before
   * @throws UnknownOutcomeError when the database stays away
   */
  async write<A>(
    { keyed }: CommandContext,
    work: (client: pg.PoolClient, repeated: boolean) => Promise<A>,
  ): Promise<A> {
    const deadline = Date.now() + SETTLE_WITHIN_MS;
    for (let repeated = false; ; repeated = true) {
      try {
        const answer = await inTransaction(this.pool, async (client) => {
          const made = await work(client, repeated);
          if (keyed) {
            await this.outcomes.keep(keyed, { status: keyed.status, body: made }, client);
          }
          return made;
        });
        if (keyed) keyed.stored = true;
        return answer;
      } catch (error) {
        // Without a connection nothing was begun, unless it was by an earlier try.
        const unsettled = repeated ? isDatabaseUnavailable(error) : isConnectionLoss(error);
        if (!unsettled) throw error;
        if (Date.now() > deadline) {
          throw new UnknownOutcomeError('the outcome of a write stays unknown', { cause: error });
        }
        await wait(SETTLE_EVERY_MS);
      }
    }
  }

  /** @throws NotFoundError */
  async find(accountId: number, id: number): Promise<WebhookSubscriptionRow> {
    const [row] = await ask<WebhookSubscriptionRow>(this.pool, {
      text: FIND,
      values: [id, accountId],
    });
    if (!row) throw new NotFoundError('Webhook subscription');
    return row;
  }

  /** Nobody else changes it until the transaction ends. @throws NotFoundError */
  async lock(client: pg.PoolClient, accountId: number, id: number): Promise<WebhookSubscription> {
    const { rows } = await client.query<WebhookSubscriptionRow>(`${FIND} for no key update`, [
      id,
      accountId,
    ]);
    const [row] = rows;
    if (!row) throw new NotFoundError('Webhook subscription');
    return subscriptionOf(row);
  }

  /**
   * @param activeFrom log position from which on events are sent; null while never enabled
   * @returns false when it was there already, from an earlier try
   */
  async insert(
    client: pg.PoolClient,
    subscription: WebhookSubscription,
    sealedSecret: Buffer,
    activeFrom: string | null,
  ): Promise<boolean> {
    const { rowCount } = await client.query(
      `insert into webhook_subscriptions (id, account_id, events, target_url, description,
         payload_format, secret, enabled, disabled_at, disabled_reason, active_from, created_at,
         updated_at)
       values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $12)
       on conflict (id) do nothing`,
      [
        subscription.id,
        subscription.accountId,
        subscription.events,
        subscription.targetUrl,
        subscription.description,
        subscription.payloadFormat,
        sealedSecret,
        subscription.enabled,
        subscription.disabledAt,
        subscription.disabledReason,
        activeFrom,
        subscription.createdAt,
      ],
    );
    return rowCount === 1;
  }

  async update(client: pg.PoolClient, subscription: WebhookSubscription): Promise<void> {
    await client.query(
      `update webhook_subscriptions
       set events = $2, target_url = $3, description = $4, payload_format = $5, enabled = $6,
         disabled_at = $7, disabled_reason = $8, updated_at = $9
       where id = $1`,
      [
        subscription.id,
        subscription.events,
        subscription.targetUrl,
        subscription.description,
        subscription.payloadFormat,
        subscription.enabled,
        subscription.disabledAt,
        subscription.disabledReason,
        subscription.updatedAt,
      ],
    );
  }

  /**
   * Enabled again: earlier failures are forgotten, and events count from now on.
   * @param giveUpBefore what was planned before is too old to be sent
   */
  async resume(
    client: pg.PoolClient,
    id: number,
    activeFrom: string | null,
    giveUpBefore: Date,
  ): Promise<void> {
    await client.query(
      `update webhook_subscriptions
       set failing_since = null, active_from = $2, give_up_before = greatest(give_up_before, $3)
       where id = $1`,
      [id, activeFrom, giveUpBefore],
    );
  }

  /** @param until the old secret signs beside the new one; null: not at all */
  async rotate(
    client: pg.PoolClient,
    { id, updatedAt }: WebhookSubscription,
    sealedSecret: Buffer,
    until: Date | null,
  ): Promise<void> {
    await client.query(
      `update webhook_subscriptions
       set secret = $2, previous_secret = case when $3::timestamptz is null then null else secret end,
         previous_secret_until = $3, updated_at = $4
       where id = $1`,
      [id, sealedSecret, until, updatedAt],
    );
  }

  async hasSecret(client: pg.PoolClient, id: number, sealedSecret: Buffer): Promise<boolean> {
    const { rowCount } = await client.query(
      'select 1 from webhook_subscriptions where id = $1 and secret = $2',
      [id, sealedSecret],
    );
    return rowCount === 1;
  }

  /** @returns whether it was there */
  async remove(client: pg.PoolClient, accountId: number, id: number): Promise<boolean> {
    const { rowCount } = await client.query(
      'delete from webhook_subscriptions where id = $1 and account_id = $2',
      [id, accountId],
    );
    return rowCount === 1;
  }

  async audit(
    client: pg.PoolClient,
    { accountId, actor, channel, requestId }: CommandContext,
    id: number,
    action: 'created' | 'updated' | 'enabled' | 'disabled' | 'secret_rotated' | 'deleted',
  ): Promise<void> {
    await writeAuditEntry(client, {
      accountId,
      type: `webhook_subscription.${action}`,
      actor,
      channel,
      requestId,
      subject: { webhook_subscription_id: id },
    });
  }

  /** How the most recent attempt went; never `updated_at` (contract section 9). */
  async attempted(
    id: number,
    { at, status, error }: { at: Date; status: number | null; error: string | null },
  ): Promise<void> {
    await this.pool.query(
      `update webhook_subscriptions
       set last_delivery_at = $2, last_delivery_status = $3, last_delivery_error = $4
       where id = $1`,
      [id, at, status, error],
    );
  }
}
