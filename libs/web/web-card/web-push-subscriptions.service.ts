import { Injectable } from '@nestjs/common';
import pg, { Pool } from 'pg';
import { query, inTransaction, type Queryable } from '#platform/database/connection.js';
import { PersonalKeys } from '#platform/event-store/personal-keys/personal-keys.js';
import type { CustomerCard } from '#loyalty/stamping/customer-card.js';
import { PASS_HOLDERS } from '#outbound/passes/pass-holders.js';
import type { UpdateRequest } from '#outbound/passes/pass-sender.js';
import { Passes } from '#outbound/passes/passes.service.js';
import { createCustomerErasedError } from '#loyalty/stamping/customer-subjects.js';
import { VapidKeys } from './vapid-keys.service.js';
import type { WebPushSubscription } from './web-push-subscription.js';

/** The most browsers of one customer; the oldest beyond them are long out of use. */
const MAX_PER_CARD = 10;

export type StoredSubscription = {
  id: number;
  customerCardId: number;
  accountId: number;
  customerId: number;
  sealed: Buffer;
  /** False after the card's holder was erased. */
  hasHolder: boolean;
  /** The tag of the last notification that was sent to this browser, and of the last message of the store. */
  notifiedTag: number;
  messagedTag: number;
};

const sealingContext = (customerCardId: number): string => `web push ${customerCardId}`;

/** Stores the browsers to notify of changes. Their addresses are sealed with the customer's own key. */
@Injectable()
export class WebPushSubscriptions {
  constructor(
    private readonly pool: Pool,
    private readonly keys: PersonalKeys,
    private readonly vapid: VapidKeys,
    private readonly passes: Passes,
  ) {}

  /** Adds a browser, or updates the keys of a known one. @throws RejectedError when the customer was erased */
  async add(card: CustomerCard, subscription: WebPushSubscription): Promise<void> {
    const { id, accountId, customerId } = card;
    const text = JSON.stringify(subscription);
    const sealed = await this.keys.sealText(customerId, text, sealingContext(id));
    if (!sealed) throw createCustomerErasedError();
    const { notificationTag } = await this.passes.open(card);
    const hash = this.vapid.computeFingerprint(subscription.endpoint);
    await query(this.pool, {
      name: 'web_push_add',
      text: `insert into web_push_subscriptions
               (customer_card_id, account_id, customer_id, endpoint_hash, sealed, notified_tag, messaged_tag)
             values ($1, $2, $3, $4, $5, $6,
               coalesce((select message_tag from passes where customer_card_id = $1), 0))
             on conflict (customer_card_id, endpoint_hash) do update
             set sealed = excluded.sealed, customer_id = excluded.customer_id`,
      values: [id, accountId, customerId, hash, sealed, notificationTag],
    });
    await query(this.pool, {
      name: 'web_push_prune',
      text: `delete from web_push_subscriptions where id in (
               select id from web_push_subscriptions where customer_card_id = $1
               order by id desc offset ${MAX_PER_CARD})`,
      values: [id],
    });
    await this.passes.markInstalled(id, accountId, 'web');
  }

  async remove(customerCardId: number, endpoint: string): Promise<void> {
    await this.deleteWith(customerCardId, {
      name: 'web_push_remove',
      text: 'delete from web_push_subscriptions where customer_card_id = $1 and endpoint_hash = $2',
      values: [customerCardId, this.vapid.computeFingerprint(endpoint)],
    });
  }

  /** Removes a subscription that the browser has ended, or that cannot be decrypted any more. */
  async forget({ id, customerCardId }: StoredSubscription): Promise<void> {
    await this.deleteWith(customerCardId, {
      name: 'web_push_forget',
      text: 'delete from web_push_subscriptions where id = $1',
      values: [id],
    });
  }

  async find(id: number): Promise<StoredSubscription | undefined> {
    const [row] = await query<{
      id: number;
      customer_card_id: number;
      account_id: number;
      customer_id: number;
      sealed: Buffer;
      hasHolder: boolean;
      notified_tag: number;
      messaged_tag: number;
    }>(this.pool, {
      name: 'web_push_find',
      text: `select s.id, s.customer_card_id, s.account_id, s.customer_id, s.sealed, s.notified_tag, s.messaged_tag,
               exists (select from ${PASS_HOLDERS} r join personal_keys k on k.subject_id = r.customer_id
                       where r.id = s.customer_card_id) as "hasHolder"
             from web_push_subscriptions s where s.id = $1`,
      values: [id],
    });
    return (
      row && {
        id: row.id,
        customerCardId: row.customer_card_id,
        accountId: row.account_id,
        customerId: row.customer_id,
        sealed: row.sealed,
        hasHolder: row.hasHolder,
        notifiedTag: row.notified_tag,
        messagedTag: row.messaged_tag,
      }
    );
  }

  /** Decrypts a subscription; undefined when the customer was erased. */
  async decrypt({
    customerId,
    customerCardId,
    sealed,
  }: StoredSubscription): Promise<WebPushSubscription | undefined> {
    const text = await this.keys.openText(customerId, sealed, sealingContext(customerCardId));
    return text === undefined ? undefined : (JSON.parse(text) as WebPushSubscription);
  }

  async markNotified({ id }: StoredSubscription, notificationTag: number): Promise<void> {
    await query(this.pool, {
      name: 'web_push_told',
      text: 'update web_push_subscriptions set notified_tag = greatest(notified_tag, $2) where id = $1',
      values: [id, notificationTag],
    });
  }

  async markMessaged({ id }: StoredSubscription, messageTag: number): Promise<void> {
    await query(this.pool, {
      name: 'web_push_messaged',
      text: 'update web_push_subscriptions set messaged_tag = greatest(messaged_tag, $2) where id = $1',
      values: [id, messageTag],
    });
  }

  async findTargets(customerCardIds: number[], by: Queryable): Promise<UpdateRequest[]> {
    const rows = await query<{ id: number; account_id: number }>(by, {
      name: 'web_push_targets',
      text: 'select id, account_id from web_push_subscriptions where customer_card_id = any ($1)',
      values: [customerCardIds],
    });
    return rows.map(({ id, account_id: accountId }) => ({
      channel: 'web',
      target: String(id),
      accountId,
    }));
  }

  private async deleteWith(customerCardId: number, deletion: pg.QueryConfig): Promise<void> {
    await inTransaction(this.pool, (client) =>
      this.passes.markRemovedAfter(client, [customerCardId], 'web', async () => {
        await client.query(deletion);
        const { rowCount } = await client.query({
          name: 'web_push_left',
          text: 'select from web_push_subscriptions where customer_card_id = $1 limit 1',
          values: [customerCardId],
        });
        return rowCount === 0 ? [customerCardId] : [];
      }),
    );
  }
}
