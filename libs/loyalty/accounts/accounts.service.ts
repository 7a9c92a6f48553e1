import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { Config } from '#configuration/config.js';
import { NotFoundError } from '#platform/kernel/errors.js';
import { query, type Queryable } from '#platform/database/connection.js';
import { PastStates, type PointInTime } from '#platform/event-store/log/past-states.service.js';
import { PastCounts, type PastCount } from '#platform/event-store/log/past-counts.service.js';
import type { Caller } from '#platform/http/caller.js';
import type { AccountTimeZones } from '#platform/http/input.js';
import type { PageRange } from '#platform/http/page.js';
import type { StoreProfile, StoreProfiles } from '#identity/store-profiles.service.js';
import { account, type Account } from './account.js';
import type { AccountSettings } from './account.events.js';
import { toAccountJson, type AccountCounts, type AccountJson } from './account.dto.js';

/** @property personal it is the user's own store */
type Ownership = { personal: boolean };

type ConsoleSettings = Pick<AccountSettings, 'consentTexts' | 'smsCountries'> & {
  country: string | null;
};

export type AccountRow = { state: Account } & AccountCounts & Ownership;

/** SQL over `a`, something with the id of a store: what is counted of the store. */
export const ACCOUNT_COUNTS = `
  (select count(*) from cards c where c.account_id = a.id) as cards,
  (select count(*) from customers u
    where u.account_id = a.id and u.merged_into is null) as customers,
  (select count(*) from locations l
    where l.account_id = a.id and l.deleted_at is null) as locations,
  (select count(*) from posters p
    where p.account_id = a.id and p.deleted_at is null) as posters`;

/** Matches the memberships of a user that a token may use. */
const REACHABLE = 'm.user_id = $1 and ($2::bigint[] is null or m.account_id = any ($2))';

/** @property principalId the user @property accountIds the only stores that the token may access; null: all */
type TokenReach = Pick<Caller, 'principalId' | 'accountIds'>;

/**
 * Finds one store; the request guard has checked access. A user who has just been removed, but is still cached there,
 * must not read that there is no such store: clients would delete their data of it.
 */
const FIND_ACCOUNT = {
  name: 'accounts_find',
  text: `select a.state, coalesce(m.personal, false) as personal, ${ACCOUNT_COUNTS}
         from accounts a left join memberships m on m.account_id = a.id and m.user_id = $1
         where a.id = $2`,
};

/** Counts customers, without those who are merged into another. */
const CUSTOMER_COUNT: PastCount = {
  name: 'past_customers',
  ownerColumn: 'account_id',
  changes: { 'customer.created': 1, 'customer.merged_away': -1, 'customer.restored': 1 },
  findOwners: async (events) => events.map(({ meta }) => meta.accountId),
};

const PROFILES = {
  name: 'accounts_profiles',
  text: `select id, name, time_zone as "timeZone", locale, country
         from accounts where id = any ($1) order by id`,
};

@Injectable()
export class AccountsService implements AccountTimeZones, StoreProfiles {
  constructor(
    private readonly pool: Pool,
    private readonly pastStates: PastStates,
    private readonly pastCounts: PastCounts,
    private readonly config: Config,
  ) {}

  /** Lists the stores that a token may access. */
  async listFor(
    { principalId, accountIds }: TokenReach,
    { after, limit }: PageRange,
  ): Promise<AccountJson[]> {
    const rows = await query<AccountRow>(this.pool, {
      text: `select a.state, m.personal, ${ACCOUNT_COUNTS}
             from memberships m join accounts a on a.id = m.account_id
             where ${REACHABLE} and m.account_id > $3 order by m.account_id limit $4`,
      values: [principalId, accountIds, after?.[0] ?? 0, limit],
    });
    return rows.map((row) => this.toJson(row.state, row, row.personal));
  }

  /** @throws NotFoundError */
  async get(userId: number, id: number): Promise<AccountJson> {
    const [row] = await query<AccountRow>(this.pool, { ...FIND_ACCOUNT, values: [userId, id] });
    if (!row) throw new NotFoundError('Store');
    return this.toJson(row.state, row, row.personal);
  }

  /** @throws NotFoundError */
  async getTimeZone(id: number): Promise<string> {
    const [row] = await query<{ time_zone: string }>(this.pool, {
      name: 'accounts_time_zone',
      text: 'select time_zone from accounts where id = $1',
      values: [id],
    });
    if (!row) throw new NotFoundError('Store');
    return row.time_zone;
  }

  async findProfiles(ids: number[], by: Queryable = this.pool): Promise<StoreProfile[]> {
    return query<StoreProfile>(by, { ...PROFILES, values: [ids] });
  }

  /** Finds what only the console shows of a store's settings. @throws NotFoundError */
  async getConsoleSettings(id: number): Promise<ConsoleSettings> {
    const [row] = await query<{ state: Account }>(this.pool, {
      name: 'accounts_console_settings',
      text: 'select state from accounts where id = $1',
      values: [id],
    });
    if (!row) throw new NotFoundError('Store');
    const { consentTexts, smsCountries, country } = row.state;
    return { consentTexts, smsCountries, country };
  }

  /** @throws NotFoundError */
  async getLogo(id: number): Promise<Pick<Account, 'logo'>> {
    const [row] = await query<{ state: Account }>(this.pool, {
      name: 'accounts_console_settings',
      text: 'select state from accounts where id = $1',
      values: [id],
    });
    if (!row) throw new NotFoundError('Store');
    return { logo: row.state.logo };
  }

  /** Finds the store with its state at that time. @throws NotFoundError when it did not exist yet */
  async getPast(userId: number, id: number, time: Date): Promise<AccountJson> {
    const past = await this.pastStates.toMoment(time);
    const state = await this.pastStates.projectOne(account, id, past);
    if (!state) throw new NotFoundError('Store');
    const { personal } = await this.findCountsFor(userId, id);
    return this.toJson(state, await this.countPast(id, past), personal);
  }

  /** Lists the stores that a token may access now, as they were. */
  async listPastFor({ principalId, accountIds }: TokenReach, time: Date): Promise<AccountJson[]> {
    const past = await this.pastStates.toMoment(time);
    const rows = await query<{ id: number } & Ownership>(this.pool, {
      text: `select m.account_id as id, m.personal from memberships m
             where ${REACHABLE} order by m.account_id`,
      values: [principalId, accountIds],
    });
    const own = new Map(rows.map(({ id, personal }) => [id, personal]));
    const ids = [...own.keys()];
    const stores: AccountJson[] = [];
    for (const state of await this.pastStates.projectAll(account, ids, past)) {
      const counts = await this.countPast(state.id, past);
      stores.push(this.toJson(state, counts, own.get(state.id) ?? false));
    }
    return stores;
  }

  private async countPast(id: number, past: PointInTime): Promise<AccountCounts> {
    const [own] = await query<Record<'cards' | 'locations' | 'posters', number[]>>(this.pool, {
      name: 'accounts_own',
      text: `select array(select id from cards where account_id = $1) as cards,
        array(select id from locations where account_id = $1) as locations,
        array(select id from posters where account_id = $1) as posters`,
      values: [id],
    });
    const count = async (table: 'cards' | 'locations' | 'posters') =>
      (await this.pastStates.projectRecords(table, own?.[table] ?? [], past)).length;
    return {
      cards: await count('cards'),
      customers: (await this.pastCounts.count(id, [id], CUSTOMER_COUNT, past)).get(id) ?? 0,
      locations: await count('locations'),
      posters: await count('posters'),
    };
  }

  toJson(account: Account, counts: AccountCounts, personal: boolean): AccountJson {
    return toAccountJson(account, counts, personal, this.config.publicUrl);
  }

  /** Finds what the response has besides the store's state. Zeros if there is no such store. */
  async findCountsFor(userId: number, id: number): Promise<AccountCounts & Ownership> {
    const [row] = await query<AccountCounts & Ownership>(this.pool, {
      name: 'accounts_seen_by',
      text: `select ${ACCOUNT_COUNTS}, exists (select from memberships m
               where m.account_id = a.id and m.user_id = $2 and m.personal) as personal
             from (select $1::bigint as id) a`,
      values: [id, userId],
    });
    if (!row) throw new Error('a count always returns a row');
    return row;
  }
}
