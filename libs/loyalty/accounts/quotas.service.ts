import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { Config } from '#configuration/config.js';
import { QUOTA_NAMES, type QuotaChanges, type QuotaName } from '#configuration/store-quotas.js';
import { findChanges } from '#platform/kernel/changes.js';
import { NotFoundError } from '#platform/kernel/errors.js';
import { query, type Queryable } from '#platform/database/connection.js';
import { WindowCounts } from '#platform/database/window-counts.js';
import {
  CapOverrides,
  type CapShare,
} from '#platform/event-store/commands/cap-overrides.service.js';
import {
  AuditedWrites,
  type AuditedWriter,
} from '#platform/event-store/commands/audited-writes.service.js';
import { renderCapName } from '#platform/event-store/port/caps.js';
import { renderMessageCount } from './message-counts.js';
import { isSharedQuota, QUOTAS, type SharedQuotaName } from './quotas.js';

/**
 * Reads everything but the e-mails of signup pages, whose counter has a keyed hash. Each count goes by an index of the
 * store; that of the customers is the longest. What is shared counts for all stores that share it.
 */
const FIND_USAGE = {
  name: 'quotas_usage',
  text: `
    select
      (select count(*) from customers r
        where r.account_id = any ($2) and r.merged_into is null and r.erased_at is null) as customers,
      (select count(*) from cards r where r.account_id = a.id) as cards,
      (select count(*) from locations r where r.account_id = a.id and r.deleted_at is null) as locations,
      (select count(*) from posters r where r.account_id = a.id and r.deleted_at is null) as posters,
      (select count(*) from pictures r where r.account_id = a.id) as pictures,
      (select count(*) from webhook_subscriptions r where r.account_id = a.id) as webhook_subscriptions,
      (select coalesce(sum(r.rows_total), 0) from imports r
        where r.account_id = any ($3) and coalesce(r.started_at, r.created_at) > now() - interval '1 day'
          and (not r.dry_run or r.started_at is not null))::bigint as import_rows_per_day,
      ${renderMessageCount('$4', `'sms'`)} as sms_per_day,
      ${renderMessageCount('$5', `'email'`)} as mails_per_day
    from accounts a where a.id = $1`,
};

const FIND_OWNED = {
  name: 'quotas_owned_stores',
  text: `select account_id from memberships where user_id = $1 and role = 'owner'`,
};

const FIND_OVERRIDES = {
  name: 'quotas_overrides',
  text: 'select cap, max from es.cap_overrides where cap = any ($1)',
};

/**
 * @property used by all stores that share it
 * @property max null: no limit
 * @property isOwn whether it is the store's own instead of the usual one
 * @property isShared whether other stores share it
 */
export type Quota = {
  name: QuotaName;
  label: string;
  used: number;
  max: number | null;
  isOwn: boolean;
  isShared: boolean;
};

type Usage = Record<Exclude<QuotaName, 'signup_mails_per_day'>, number>;

/** Shows the quotas of a store, and gives it its own. Where a quota is used up is decided where something is created. */
@Injectable()
export class Quotas {
  constructor(
    private readonly pool: Pool,
    private readonly writes: AuditedWrites,
    private readonly counts: WindowCounts,
    private readonly caps: CapOverrides,
    private readonly config: Config,
  ) {}

  /** Lists the quotas of a store with their usage. @throws NotFoundError */
  async list(accountId: number): Promise<Quota[]> {
    const [shares, overrides] = await Promise.all([
      this.findShares(accountId),
      this.findOverrides(accountId),
    ]);
    const owners = [
      shares.customers.owners,
      shares.import_rows_per_day.owners,
      shares.sms_per_day.owners,
      shares.mails_per_day.owners,
    ];
    const [[usage], mails] = await Promise.all([
      query<Usage>(this.pool, { ...FIND_USAGE, values: [accountId, ...owners] }),
      this.counts.get(this.pool, ['signup mails', shares.signup_mails_per_day.owner]),
    ]);
    if (!usage) throw new NotFoundError('Store');
    return QUOTA_NAMES.map((name) => {
      const own = overrides.get(name);
      const share = isSharedQuota(name) ? shares[name] : undefined;
      const set = share ? share.max : own;
      return {
        name,
        label: QUOTAS[name],
        used: name === 'signup_mails_per_day' ? mails : usage[name],
        max: set ?? this.config.quotas[name],
        isOwn: own !== undefined,
        isShared: share !== undefined && share.owners.length > 1,
      };
    });
  }

  /** Gives a store quotas of its own, or the usual ones again. Existing records above a quota stay. */
  async change(by: AuditedWriter, accountId: number, changes: QuotaChanges): Promise<void> {
    await this.writes.write(by, async (transaction) => {
      const { manager } = transaction;
      const stores = await query(manager, {
        text: 'select from accounts where id = $1',
        values: [accountId],
      });
      if (stores.length === 0) throw new NotFoundError('Store');
      const names = QUOTA_NAMES.filter((name) => changes[name] !== undefined);
      const before = await this.findOverrides(accountId, manager);
      for (const name of names) {
        const cap = renderCapName(name, accountId);
        const max = changes[name];
        // Counted anew from now on: without a quota, new records were not counted.
        await query(manager, {
          text: `delete from es.cap_counts where cap = $1
             or cap = (select $2 || ' ' || s.shared_with from es.cap_sharing s where s.owner = $3)`,
          values: [cap, name, accountId],
        });
        if (max === null)
          await query(manager, 'delete from es.cap_overrides where cap = $1', [cap]);
        else {
          await query(manager, {
            text: `insert into es.cap_overrides (cap, max) values ($1, $2)
             on conflict (cap) do update set max = excluded.max`,
            values: [cap, max],
          });
        }
      }
      const toRecord = (find: (name: QuotaName) => number | null | undefined) =>
        Object.fromEntries(names.map((name) => [name, find(name) ?? null]));
      const former = toRecord((name) => before.get(name));
      const subject = {
        changes: findChanges(
          former,
          toRecord((name) => changes[name]),
        ),
      };
      await transaction.audit({ accountIds: [accountId], type: 'store.quotas_changed', subject });
    });
  }

  /**
   * Gives a new store the smallest of each quota that it does not share and the owner's stores have of their own: otherwise
   * an owner could have the usual ones by creating a store.
   */
  async inherit(by: AuditedWriter, accountId: number, ownerId: number): Promise<void> {
    const rows = await query<{ account_id: number }>(this.pool, {
      ...FIND_OWNED,
      values: [ownerId],
    });
    const smallest = new Map<QuotaName, number>();
    for (const { account_id: ownedId } of rows) {
      for (const [name, max] of await this.findOverrides(ownedId)) {
        if (!isSharedQuota(name)) smallest.set(name, Math.min(max, smallest.get(name) ?? max));
      }
    }
    if (smallest.size > 0) await this.change(by, accountId, Object.fromEntries(smallest));
  }

  private async findShares(accountId: number): Promise<Record<SharedQuotaName, CapShare>> {
    const find = (name: SharedQuotaName) => this.caps.findShare(name, accountId);
    const [customers, importRows, sms, mails, signupMails] = await Promise.all([
      find('customers'),
      find('import_rows_per_day'),
      find('sms_per_day'),
      find('mails_per_day'),
      find('signup_mails_per_day'),
    ]);
    return {
      customers,
      import_rows_per_day: importRows,
      sms_per_day: sms,
      mails_per_day: mails,
      signup_mails_per_day: signupMails,
    };
  }

  private async findOverrides(
    accountId: number,
    by: Queryable = this.pool,
  ): Promise<Map<QuotaName, number>> {
    const names = new Map(QUOTA_NAMES.map((name) => [renderCapName(name, accountId), name]));
    const values = [[...names.keys()]];
    const rows = await query<{ cap: string; max: number }>(by, { ...FIND_OVERRIDES, values });
    return new Map(
      rows.flatMap(({ cap, max }): [QuotaName, number][] => {
        const name = names.get(cap);
        return name === undefined ? [] : [[name, max]];
      }),
    );
  }
}
