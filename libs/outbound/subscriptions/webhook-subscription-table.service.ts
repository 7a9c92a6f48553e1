import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository, type EntityManager } from 'typeorm';
import { NotFoundError } from '#platform/kernel/errors.js';
import { awaitQuery, query } from '#platform/database/connection.js';
import { checkCap } from '#platform/event-store/port/caps.js';
import type { PageRange } from '#platform/http/page.js';
import {
  toSettingsRow,
  webhookSubscriptionCap,
  toSubscription,
  WebhookSubscriptionRow,
} from './webhook-subscription.entity.js';
import { renderLastDelivery } from './webhook-delivery.js';
import { EVERY_EVENT, type LastTest, type WebhookSubscription } from './webhook-subscription.js';

/** Stores subscriptions. Every method that changes one is called inside an AuditedWrites transaction. */
@Injectable()
export class WebhookSubscriptionTable {
  constructor(
    @InjectRepository(WebhookSubscriptionRow)
    private readonly subscriptions: Repository<WebhookSubscriptionRow>,
  ) {}

  /** Lists subscriptions, oldest first. @param event null: all */
  async list(
    accountId: number,
    event: string | null,
    { after, limit }: PageRange,
  ): Promise<WebhookSubscription[]> {
    const builder = this.subscriptions
      .createQueryBuilder('s')
      .where('s.account_id = :accountId and s.id > :after', { accountId, after: after?.[0] ?? 0 })
      .orderBy('s.id')
      .limit(limit ?? undefined);
    if (event !== null) builder.andWhere('s.events && :named', { named: [event, EVERY_EVENT] });
    return (await awaitQuery(builder.getMany())).map(toSubscription);
  }

  /** Finds a subscription. @throws NotFoundError */
  async get(accountId: number, id: number): Promise<WebhookSubscriptionRow> {
    const row = await awaitQuery(this.subscriptions.findOneBy({ id, account_id: accountId }));
    if (!row) throw new NotFoundError('Webhook subscription');
    return row;
  }

  /** Locks the subscription against changes by others until the transaction ends. @throws NotFoundError */
  async lock(
    manager: EntityManager,
    accountId: number,
    id: number,
  ): Promise<WebhookSubscriptionRow> {
    const row = await manager.findOne(WebhookSubscriptionRow, {
      where: { id, account_id: accountId },
      lock: { mode: 'for_no_key_update' },
    });
    if (!row) throw new NotFoundError('Webhook subscription');
    return row;
  }

  /**
   * Inserts a subscription.
   * @param activeFrom log position from which on events are sent; null while never enabled
   * @param limit how many the store may have
   * @returns false when an earlier attempt has already inserted it
   * @throws CapReachedError
   */
  async insert(
    manager: EntityManager,
    subscription: WebhookSubscription,
    sealed: { secret: Buffer; headers: Buffer | null },
    activeFrom: string | null,
    limit: number,
  ): Promise<boolean> {
    const { id, accountId } = subscription;
    const cap = { kind: webhookSubscriptionCap, owner: accountId, id, max: limit };
    await checkCap(manager, cap);
    const { raw } = await manager
      .createQueryBuilder()
      .insert()
      .into(WebhookSubscriptionRow)
      .values({
        id,
        account_id: accountId,
        ...toSettingsRow(subscription),
        ...sealed,
        signature: subscription.signature,
        public_key: subscription.publicKey,
        active_from: activeFrom,
        created_at: subscription.createdAt,
      })
      .orIgnore()
      .returning('id')
      .execute();
    return (raw as unknown[]).length === 1;
  }

  /** @param sealedHeaders undefined: they stay as they are */
  async update(
    manager: EntityManager,
    subscription: WebhookSubscription,
    sealedHeaders: Buffer | null | undefined,
  ): Promise<void> {
    await manager.update(
      WebhookSubscriptionRow,
      { id: subscription.id },
      {
        ...toSettingsRow(subscription),
        ...(sealedHeaders !== undefined && { headers: sealedHeaders }),
      },
    );
  }

  /**
   * Enables a subscription again: earlier failures are forgotten, and only events from `activeFrom` on are sent.
   * @param giveUpBefore deliveries enqueued before this moment are too old to be sent
   */
  async resume(
    manager: EntityManager,
    id: number,
    activeFrom: string | null,
    giveUpBefore: Date,
  ): Promise<void> {
    await manager
      .createQueryBuilder()
      .update(WebhookSubscriptionRow)
      .set({
        failing_since: null,
        healthy_at: () => 'now()',
        active_from: activeFrom,
        give_up_before: () => 'greatest(give_up_before, :giveUpBefore::timestamptz)',
      })
      .where({ id })
      .setParameter('giveUpBefore', giveUpBefore)
      .execute();
  }

  /** Replaces the secret. @param until how long the old secret also signs; null: not at all */
  async rotate(
    manager: EntityManager,
    { id, signature, publicKey, updatedAt }: WebhookSubscription,
    sealedSecret: Buffer,
    until: Date | null,
  ): Promise<void> {
    await manager.update(
      WebhookSubscriptionRow,
      { id },
      {
        secret: sealedSecret,
        signature,
        public_key: publicKey,
        previous_secret: until === null ? null : () => 'secret',
        previous_secret_until: until,
        updated_at: updatedAt,
      },
    );
  }

  async hasSecret(manager: EntityManager, id: number, sealedSecret: Buffer): Promise<boolean> {
    return manager.existsBy(WebhookSubscriptionRow, { id, secret: sealedSecret });
  }

  /** Deletes a subscription. @returns the deleted one; undefined when there was none */
  async remove(
    manager: EntityManager,
    accountId: number,
    id: number,
  ): Promise<WebhookSubscription | undefined> {
    const row = await manager.findOne(WebhookSubscriptionRow, {
      where: { id, account_id: accountId },
      lock: { mode: 'pessimistic_write' },
    });
    if (!row) return undefined;
    await manager.delete(WebhookSubscriptionRow, { id });
    return toSubscription(row);
  }

  /** Stores the result of a test, if it is the latest; never changes `updated_at` (HOOK-56). */
  async saveTest(id: number, test: LastTest): Promise<void> {
    await query(this.subscriptions.manager, {
      text: `update webhook_subscriptions s
             set ${renderLastDelivery({ at: '$2::timestamptz', status: '$3::int', error: '$4' })},
               last_test = case when (s.last_test ->> 'at')::timestamptz > $2 then s.last_test else $5::jsonb end
             where s.id = $1`,
      values: [id, test.at, test.status, test.error, test],
    });
  }
}
