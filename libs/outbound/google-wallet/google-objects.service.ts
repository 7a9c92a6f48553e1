import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { query, type Queryable } from '#platform/database/connection.js';
import { ProcessSession } from '#platform/database/process-session.js';
import type { CardScope, UpdateRequest } from '#outbound/passes/pass-sender.js';
import type { CustomerCard } from '#loyalty/stamping/customer-card.js';

/** Longer than a send can take. After that, another process may take over from one that has fallen silent. */
const LEASE_SECONDS = 60;
const NOTIFICATION_QUOTA_HOURS = 24;
/** The quota of Google for each kind of notification, for one pass within these hours. */
const NOTIFICATION_QUOTA = 3;

export type NotificationKind = 'update' | 'message';

/** A lease on a record: only its holder sends it. */
export type Leased<R> = R & { leasedUntil: string };
export type LeasedClass = Leased<{ cardId: number; accountId: number; sentHash: string | null }>;
export type LeasedObject = Leased<{
  customerCardId: number;
  accountId: number;
  cardId: number;
  sentHash: string | null;
  notifiedTag: number;
}>;

const IS_NOT_LEASED = '(leased_until is null or leased_until <= now())';
const ACQUIRE_LEASE = `process = $2, leased_until = now() + interval '${LEASE_SECONDS} seconds'`;

/**
 * Replaces the hash while a change is being sent, and as long as there is no response to it. It is unknown which of the
 * two states Google shows then, so even the former one has to be sent again.
 */
export const UNCERTAIN_HASH = '';

/** Stores which classes and objects Google has, or should have, and the hash of what was last sent of each. */
@Injectable()
export class GoogleObjects {
  constructor(
    private readonly pool: Pool,
    private readonly session: ProcessSession,
  ) {
    for (const name of ['google_classes', 'google_objects'])
      session.addLeases({ name, holder: 'process', endsAt: 'leased_until' });
  }

  /** Finds those of these customer cards that are registered at Google. */
  async findObjectTargets(customerCardIds: number[], by: Queryable): Promise<UpdateRequest[]> {
    const rows = await query<{ id: number; account_id: number }>(by, {
      name: 'google_objects_targets',
      text: `select customer_card_id as id, account_id from google_objects
             where customer_card_id = any ($1)`,
      values: [customerCardIds],
    });
    return rows.map(({ id, account_id: accountId }) => ({
      channel: 'google_object',
      target: String(id),
      accountId,
    }));
  }

  /** Finds the class of this card, or all classes of the store, as far as they are registered at Google. */
  async findClassTargets(
    { accountId, cardId }: CardScope,
    by: Queryable,
  ): Promise<UpdateRequest[]> {
    const rows = await query<{ card_id: number }>(by, {
      name: 'google_classes_targets',
      text: `select card_id from google_classes
             where account_id = $1 and ($2::bigint is null or card_id = $2)`,
      values: [accountId, cardId],
    });
    return rows.map(({ card_id: id }) => ({
      channel: 'google_class',
      target: String(id),
      accountId,
    }));
  }

  /**
   * Registers a pass and its class, so that both are kept up to date at Google.
   * @param notifiedTag the customer is not notified of changes up to this tag
   * @returns whether Google already has the class and the object
   */
  async register(
    { id, accountId, cardId }: Pick<CustomerCard, 'id' | 'accountId' | 'cardId'>,
    notifiedTag: number,
  ): Promise<{ hasClass: boolean; hasObject: boolean }> {
    await query(this.pool, {
      name: 'google_register',
      text: `with of_class as (
               insert into google_classes (card_id, account_id) values ($3, $2) on conflict do nothing
             )
             insert into google_objects (customer_card_id, account_id, card_id, notified_tag, messaged_tag)
             values ($1, $2, $3, $4,
               coalesce((select message_tag from passes where customer_card_id = $1), 0))
             on conflict do nothing`,
      values: [id, accountId, cardId, notifiedTag],
    });
    const [row] = await query<{ has_class: boolean; has_object: boolean }>(this.pool, {
      name: 'google_find_sent',
      text: `select
               exists (select from google_classes where card_id = $2 and sent_hash is not null) as has_class,
               exists (select from google_objects where customer_card_id = $1 and sent_hash is not null) as has_object`,
      values: [id, cardId],
    });
    return { hasClass: row?.has_class ?? false, hasObject: row?.has_object ?? false };
  }

  /** Acquires the lease of a class. @returns undefined: no such class; busy: another process is sending it */
  async leaseClass(cardId: number): Promise<LeasedClass | 'busy' | undefined> {
    const [row] = await query<{ account_id: number; sent_hash: string | null; until: string }>(
      this.pool,
      {
        name: 'google_classes_hold',
        text: `update google_classes set ${ACQUIRE_LEASE} where card_id = $1 and ${IS_NOT_LEASED}
               returning account_id, sent_hash, leased_until::text as until`,
        values: [cardId, this.session.leaseHolder],
      },
    );
    if (!row) return (await this.hasRow('google_classes', cardId)) ? 'busy' : undefined;
    return { cardId, accountId: row.account_id, sentHash: row.sent_hash, leasedUntil: row.until };
  }

  /** Acquires the lease of an object. @returns undefined: no such object; busy: another process is sending it */
  async leaseObject(customerCardId: number): Promise<LeasedObject | 'busy' | undefined> {
    const [row] = await query<{
      account_id: number;
      card_id: number;
      sent_hash: string | null;
      notified_tag: number;
      until: string;
    }>(this.pool, {
      name: 'google_objects_hold',
      text: `update google_objects set ${ACQUIRE_LEASE} where customer_card_id = $1 and ${IS_NOT_LEASED}
             returning account_id, card_id, sent_hash, notified_tag, leased_until::text as until`,
      values: [customerCardId, this.session.leaseHolder],
    });
    if (!row) return (await this.hasRow('google_objects', customerCardId)) ? 'busy' : undefined;
    return {
      customerCardId,
      accountId: row.account_id,
      cardId: row.card_id,
      sentHash: row.sent_hash,
      notifiedTag: row.notified_tag,
      leasedUntil: row.until,
    };
  }

  private async hasRow(table: 'google_classes' | 'google_objects', id: number): Promise<boolean> {
    const key = table === 'google_classes' ? 'card_id' : 'customer_card_id';
    const rows = await query(this.pool, {
      name: `${table}_exists`,
      text: `select from ${table} where ${key} = $1`,
      values: [id],
    });
    return rows.length > 0;
  }

  async releaseClass({ cardId, leasedUntil }: LeasedClass): Promise<void> {
    await query(this.pool, {
      name: 'google_classes_free',
      text: `update google_classes set leased_until = null
             where card_id = $1 and leased_until = $2::timestamptz`,
      values: [cardId, leasedUntil],
    });
  }

  async releaseObject({ customerCardId, leasedUntil }: LeasedObject): Promise<void> {
    await query(this.pool, {
      name: 'google_objects_free',
      text: `update google_objects set leased_until = null
             where customer_card_id = $1 and leased_until = $2::timestamptz`,
      values: [customerCardId, leasedUntil],
    });
  }

  /** Finds any customer card of this card that is registered at Google. */
  async findCustomerCard(cardId: number): Promise<number | undefined> {
    const [row] = await query<{ customer_card_id: number }>(this.pool, {
      name: 'google_objects_example',
      text: `select customer_card_id from google_objects where card_id = $1
             order by customer_card_id limit 1`,
      values: [cardId],
    });
    return row?.customer_card_id;
  }

  /** Records what was sent, unless the lease has expired. @param hash of what Google has, or `UNCERTAIN_HASH` */
  async recordSentClass({ cardId, leasedUntil }: LeasedClass, hash: string): Promise<void> {
    await query(this.pool, {
      name: 'google_classes_sent',
      text: `update google_classes set sent_hash = $3
             where card_id = $1 and leased_until = $2::timestamptz`,
      values: [cardId, leasedUntil, hash],
    });
  }

  /** Records that Google does not have the class, whatever was recorded before. */
  async recordMissingClass(cardId: number): Promise<void> {
    await query(this.pool, {
      name: 'google_classes_missing',
      text: 'update google_classes set sent_hash = null where card_id = $1',
      values: [cardId],
    });
  }

  /** Does the same for an object. */
  async recordSentObject(
    { customerCardId, leasedUntil }: LeasedObject,
    hash: string,
  ): Promise<void> {
    await query(this.pool, {
      name: 'google_objects_sent',
      text: `update google_objects set sent_hash = $3
             where customer_card_id = $1 and leased_until = $2::timestamptz`,
      values: [customerCardId, leasedUntil, hash],
    });
  }

  /** Records that the customer was notified of changes up to this tag. */
  async recordNotified(customerCardId: number, tag: number): Promise<void> {
    await query(this.pool, {
      name: 'google_objects_notified',
      text: `update google_objects set notified_tag = greatest(notified_tag, $2) where customer_card_id = $1`,
      values: [customerCardId, tag],
    });
  }

  /**
   * Counts a notification before it is sent, so that a process that dies cannot exceed the quota.
   * @returns false: three have been sent in 24 hours. A notification that was counted before may be sent again
   */
  async countNotification(
    customerCardId: number,
    kind: NotificationKind,
    tag: number,
  ): Promise<boolean> {
    await query(this.pool, {
      name: 'google_notifications_prune',
      text: `delete from google_notifications
             where customer_card_id = $1 and sent_at <= now() - interval '${NOTIFICATION_QUOTA_HOURS} hours'`,
      values: [customerCardId],
    });
    const [row] = await query<{ may: boolean }>(this.pool, {
      name: 'google_notifications_count',
      text: `with counted as (
               insert into google_notifications (customer_card_id, kind, tag)
               select $1, $2, $3
               where (select count(*) from google_notifications where customer_card_id = $1 and kind = $2) < ${NOTIFICATION_QUOTA}
               on conflict do nothing returning 1
             )
             select exists (select from counted) or exists (
               select from google_notifications where customer_card_id = $1 and kind = $2 and tag = $3
             ) as may`,
      values: [customerCardId, kind, tag],
    });
    return row?.may ?? false;
  }

  /** Removes the count of a notification that was not sent after all. */
  async uncountNotification(
    customerCardId: number,
    kind: NotificationKind,
    tag: number,
  ): Promise<void> {
    await query(this.pool, {
      name: 'google_notifications_uncount',
      text: 'delete from google_notifications where customer_card_id = $1 and kind = $2 and tag = $3',
      values: [customerCardId, kind, tag],
    });
  }
}
