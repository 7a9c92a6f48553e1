import { Injectable, Logger } from '@nestjs/common';
import pg, { Pool } from 'pg';
import { Config } from '#configuration/config.js';
import { createId } from '#platform/kernel/randomness.js';
import { auditBySystem } from '#platform/database/audit-log.js';
import { inTransaction } from '#platform/database/connection.js';
import { workDaily } from '#platform/event-store/log/follow-log.js';
import { IDENTITY_CHANNEL } from './user-audit.service.js';

/** Limits the rows of one transaction, so that it holds its locks only briefly. */
const BATCH_SIZE = 500;

/** What removed users signed in with, and when: only their names and what they did stay. */
const CREDENTIALS = [
  'second_factors',
  'recovery_codes',
  'known_browsers',
  'password_resets',
  'address_changes',
  'counter_pins',
  'company_sign_ins',
  'sessions',
] as const;

const deleteCredentials = (users: string) =>
  CREDENTIALS.map(
    (table) =>
      `${table}_deleted as (delete from ${table} where user_id in (select id from ${users}))`,
  ).join(', ');

const LEFT_STORES = `
  select id from users u
  where removed_at is null and left_stores_at < now() - make_interval(days => $1)
    and not exists (select from memberships m where m.user_id = u.id)
  order by left_stores_at limit ${BATCH_SIZE} for no key update skip locked`;

/** Removes users in a statement after the locks, which sees those who have joined a store until then. */
const REMOVE = `
  with removed as (
    update users u set removed_at = now(), email = null, email_key = null
    where id = any ($1) and not exists (select from memberships m where m.user_id = u.id)
    returning id
  ), ${deleteCredentials('removed')}, noted as (
    ${auditBySystem('removed', {
      accountId: 'null',
      type: "'user.removed'",
      requestId: '$2',
      subject: "jsonb_build_object('user_id', id, 'reason', 'no_store')",
    })}
  )
  select id from removed`;

const FORGET_REMOVED = `
  with old as (
    select id from users
    where removed_at < now() - make_interval(days => $1) and email is not null
    order by removed_at limit ${BATCH_SIZE} for no key update skip locked
  ), forgotten as (
    update users u set email = null, email_key = null from old where u.id = old.id returning u.id
  ), ${deleteCredentials('forgotten')}, noted as (
    ${auditBySystem('forgotten', {
      accountId: 'null',
      type: "'user.address_deleted'",
      requestId: '$2',
      subject: "jsonb_build_object('user_id', id)",
    })}
  )
  select id from forgotten`;

/** A statement of its own: the end of a session is recorded by a trigger of the one that deletes it. */
const FORGET_SESSIONS = 'delete from ended_sessions where user_id = any ($1)';

const FORGET_INVITATIONS = `
  delete from invitations where id in (
    select id from invitations
    where coalesce(accepted_at, withdrawn_at, expires_at) < now() - make_interval(days => $1)
    limit ${BATCH_SIZE} for update skip locked)`;

/** Their links have ended. They count for the limit of an hour, which is shorter. */
const FORGET_CHANGES = `
  delete from address_changes where sha256 in (
    select sha256 from address_changes where expires_at < now() limit ${BATCH_SIZE} for update skip locked)`;

/** Deletes addresses that nobody signs in with any more. Once a day; several processes may do it. */
@Injectable()
export class AddressUpkeep {
  private readonly log = new Logger('deletion of old addresses');

  constructor(
    private readonly pool: Pool,
    private readonly config: Config,
  ) {}

  /** Runs until the signal aborts, whatever happens to the database. */
  async run(signal: AbortSignal): Promise<void> {
    await workDaily(this.log, signal, async () => {
      await this.deleteOld(signal);
      return false;
    });
  }

  async deleteOld(signal: AbortSignal): Promise<void> {
    const { addressRetentionDays: days } = this.config;
    const deletions: ((client: pg.ClientBase) => Promise<number | null>)[] = [
      (client) => this.removeWithoutStore(client, days),
      (client) => this.forgetRemoved(client, days),
      async (client) => (await client.query(FORGET_INVITATIONS, [days])).rowCount,
      async (client) => (await client.query(FORGET_CHANGES)).rowCount,
    ];
    for (const work of deletions) {
      while (!signal.aborted) {
        const count = await inTransaction(this.pool, work);
        if (count !== BATCH_SIZE) break;
      }
    }
  }

  private async forgetRemoved(client: pg.ClientBase, days: number): Promise<number> {
    const { rows } = await client.query<{ id: number }>(FORGET_REMOVED, [days, createId()]);
    await client.query(FORGET_SESSIONS, [rows.map(({ id }) => id)]);
    return rows.length;
  }

  private async removeWithoutStore(client: pg.ClientBase, days: number): Promise<number> {
    const { rows } = await client.query<{ id: number }>(LEFT_STORES, [days]);
    if (rows.length === 0) return 0;
    const ids = rows.map(({ id }) => id);
    const { rows: removed } = await client.query<{ id: number }>(REMOVE, [ids, createId()]);
    await client.query(FORGET_SESSIONS, [removed.map(({ id }) => id)]);
    await client.query('select pg_notify($1, $2)', [IDENTITY_CHANNEL, 'user.removed']);
    // Also those who have joined a store meanwhile: there may be more behind them.
    return rows.length;
  }
}
