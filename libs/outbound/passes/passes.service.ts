import { Injectable } from '@nestjs/common';
import pg, { Pool } from 'pg';
import { validate as isUuid } from 'uuid';
import { getNow } from '#platform/kernel/clock.js';
import { query } from '#platform/database/connection.js';
import type { CustomerCard } from '#loyalty/stamping/customer-card.js';
import type { Installation } from './wallet-state.dto.js';
import { PASS_HOLDERS } from './pass-holders.js';
import type {
  NotificationText,
  PassNotification,
  WrittenNotification,
} from './pass-notification.js';

export type Pass = {
  customerCardId: number;
  accountId: number;
  cardId: number;
  /** Grows with every change of the pass's content, in the order of the log. */
  tag: number;
  changedAt: Date;
  /** The tags of the last change of the balance, and of the last change that the customer is notified of. */
  balanceTag: number;
  notificationTag: number;
  notification: WrittenNotification | null;
  /** Whether its content has not been stored yet. */
  isNew: boolean;
};

type PassRow = {
  customer_card_id: number;
  account_id: number;
  card_id: number;
  tag: number;
  changed_at: Date;
  balance_tag: number;
  notification_tag: number;
  notification: (PassNotification & Partial<NotificationText>) | null;
  is_new: boolean;
};

type InstallationRow = {
  platform: Platform;
  installed_at: Date | null;
  removed_at: Date | null;
  last_synced_at: Date | null;
  last_error: string | null;
};

export type Platform = 'apple' | 'google' | 'web';

const COLUMNS =
  'customer_card_id, account_id, card_id, tag, changed_at, balance_tag, notification_tag, notification, content_hash is null as is_new';

const UNCHANGED = {
  name: 'pass_unchanged',
  text: 'select from passes where customer_card_id = $1 for share',
};
const INSTALLED = {
  name: 'pass_installed',
  text: `insert into pass_installations as i (customer_card_id, platform, account_id, installed_at)
         values ($1, $2, $3, now())
         on conflict (customer_card_id, platform) do update
         set installed_at = case when i.removed_at is null then coalesce(i.installed_at, now()) else now() end,
             removed_at = null`,
};
const HOLD = {
  name: 'pass_installations_hold',
  text: `select from pass_installations where customer_card_id = any ($1) and platform = $2
         order by customer_card_id for update`,
};
const REMOVED = {
  name: 'pass_removed',
  text: `update pass_installations set removed_at = now()
         where customer_card_id = any ($1) and platform = $2 and installed_at is not null and removed_at is null`,
};

/** Stores which passes were opened, and where they are installed. */
@Injectable()
export class Passes {
  constructor(private readonly pool: Pool) {}

  /** Finds the customer card or decoy card with this uuid. */
  async findHolder(uuid: string): Promise<CustomerCard | undefined> {
    if (!isUuid(uuid)) return undefined;
    const [row] = await query<{ state: CustomerCard }>(this.pool, {
      name: 'passes_holder',
      text: `select r.state from ${PASS_HOLDERS} r where r.uuid = $1`,
      values: [uuid],
    });
    return row?.state;
  }

  /** Starts to track changes of this pass. Called by `PassContents.open`. */
  async open({
    id,
    accountId,
    cardId,
  }: Pick<CustomerCard, 'id' | 'accountId' | 'cardId'>): Promise<Pass> {
    const [row] = await query<PassRow>(this.pool, {
      name: 'passes_open',
      text: `with opened as (
               insert into passes (customer_card_id, account_id, card_id) values ($1, $2, $3)
               on conflict do nothing returning ${COLUMNS}
             )
             select * from opened
             union all
             select ${COLUMNS} from passes where customer_card_id = $1
             limit 1`,
      values: [id, accountId, cardId],
    });
    // Another request may have inserted it after this statement began.
    const pass = row ? toPass(row) : await this.find(id);
    if (!pass) throw new Error(`pass ${id} was not stored`);
    return pass;
  }

  async find(customerCardId: number): Promise<Pass | undefined> {
    const [row] = await query<PassRow>(this.pool, {
      name: 'passes_find',
      text: `select ${COLUMNS} from passes where customer_card_id = $1`,
      values: [customerCardId],
    });
    return row && toPass(row);
  }

  /**
   * Finds out whether the tag of a client was ever issued. After a backup was restored, phones and pages still have
   * tags that lie ahead: they have missed everything since, so they get everything.
   * @returns null for no tag, and for a tag that was never issued
   */
  async findIssuedTag(tag: number | null): Promise<number | null> {
    if (tag === null || tag === 0) return tag;
    const [newest] = await query<{ tag: number }>(this.pool, {
      name: 'pass_tags_newest',
      text: 'select last_value * is_called::int as tag from pass_tags',
    });
    return newest && tag <= newest.tag ? tag : null;
  }

  /** Stores the hash of the pass's content, unless a change has done so meanwhile. */
  async saveContentHash(customerCardId: number, contentHash: string): Promise<void> {
    await query(this.pool, {
      name: 'passes_shown',
      text: 'update passes set content_hash = $2 where customer_card_id = $1 and content_hash is null',
      values: [customerCardId, contentHash],
    });
  }

  /** Finds the installations of a pass, by platform. */
  async findInstallations(customerCardId: number): Promise<Map<string, Installation>> {
    const rows = await query<InstallationRow>(this.pool, {
      name: 'pass_installations_of',
      text: `select platform, installed_at, removed_at, last_synced_at, last_error
             from pass_installations where customer_card_id = $1`,
      values: [customerCardId],
    });
    return new Map(
      rows.map((row) => [
        row.platform,
        {
          installedAt: row.installed_at,
          removedAt: row.removed_at,
          lastSyncedAt: row.last_synced_at,
          lastError: row.last_error,
        },
      ]),
    );
  }

  /** Records that the customer has put the card on a device. */
  async markInstalled(
    customerCardId: number,
    accountId: number,
    platform: Platform,
  ): Promise<void> {
    await query(this.pool, { ...INSTALLED, values: [customerCardId, platform, accountId] });
  }

  /** Does the same in a transaction, during which the pass cannot change. */
  async markInstalledWithin(
    client: pg.ClientBase,
    customerCardId: number,
    accountId: number,
    platform: Platform,
  ): Promise<void> {
    await client.query({ ...UNCHANGED, values: [customerCardId] });
    await client.query({ ...INSTALLED, values: [customerCardId, platform, accountId] });
  }

  /** Records that the card is on no device of this platform any more. */
  async markRemoved(customerCardId: number, platform: Platform): Promise<void> {
    await query(this.pool, { ...REMOVED, values: [[customerCardId], platform] });
  }

  /**
   * Deletes installations, and records which cards are then on no device of the platform, in one transaction. When two
   * callers delete the last two installations of a card at once, the second waits and sees that none is left.
   * @param take deletes in the transaction, and returns the cards of which nothing is left
   */
  async markRemovedAfter(
    client: pg.ClientBase,
    customerCardIds: number[],
    platform: Platform,
    take: () => Promise<number[]>,
  ): Promise<void> {
    await client.query({ ...HOLD, values: [customerCardIds, platform] });
    await client.query({ ...REMOVED, values: [await take(), platform] });
  }

  /**
   * Records that an update reached the platform, or that the phone fetched the pass.
   * @param error null on success
   * @param readAt when the content was read: it has nothing that changed since
   */
  async markSynced(
    customerCardId: number,
    accountId: number,
    platform: Platform,
    error: string | null = null,
    readAt = getNow(),
  ): Promise<void> {
    await query(this.pool, {
      name: 'pass_synced',
      text: `insert into pass_installations as i (customer_card_id, platform, account_id, last_synced_at, last_error)
             values ($1, $2, $3, case when $4::text is null then $5::timestamptz end, $4)
             on conflict (customer_card_id, platform) do update
             set last_synced_at = coalesce(excluded.last_synced_at, i.last_synced_at), last_error = $4`,
      values: [customerCardId, platform, accountId, error, readAt],
    });
  }
}

function toPass(row: PassRow): Pass {
  return {
    customerCardId: row.customer_card_id,
    accountId: row.account_id,
    cardId: row.card_id,
    tag: row.tag,
    changedAt: row.changed_at,
    balanceTag: row.balance_tag,
    notificationTag: row.notification_tag,
    // Earlier builds stored notifications without a text.
    notification: row.notification && {
      text: null,
      hasCount: false,
      isOwn: false,
      ...row.notification,
    },
    isNew: row.is_new,
  };
}
