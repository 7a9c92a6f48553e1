import { Logger } from '@nestjs/common';
import type { MigrationInterface, QueryRunner } from 'typeorm';
import { findEmailKey } from '#kernel/email-address.js';

const BATCH_SIZE = 1_000;

type Row = { id: number; email: string; scope: number };

/**
 * Identifies people by a key of their address that the application computes, so that no locale of a database decides who
 * is who (ADR-0088). Remembers which addresses were confirmed, and which account of a company signs in as which user.
 */
export class EmailKeys implements MigrationInterface {
  readonly name = 'EmailKeys0000000000065';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      alter table users
        -- null: nobody signs in with this address
        add email_key text collate "C",
        -- by a link in a mail to it, or by a company
        add email_confirmed_at timestamptz,
        -- since when the user has belonged to no store, after belonging to one
        add left_stores_at timestamptz,
        -- an address is deleted some time after its user was removed
        alter email drop not null,
        add constraint users_address check (removed_at is not null or email is not null);
      drop index users_email;

      alter table invitations
        add email_key text collate "C",
        -- whoever has the link reads the mails to the address
        add is_mailed boolean not null default false,
        add accepted_by bigint references users (id);
      drop index invitations_open;

      create table company_sign_ins (
        issuer text collate "C" not null,
        subject text collate "C" not null,
        user_id bigint not null references users (id),
        created_at timestamptz not null,
        primary key (issuer, subject),
        unique (user_id, issuer)
      );
    `);
    await this.fillUsers(runner);
    await this.fillInvitations(runner);
    await runner.query(`
      create unique index users_email_key on users (email_key) where removed_at is null;
      create index users_left_stores on users (left_stores_at)
        where removed_at is null and left_stores_at is not null;
      create index users_removed on users (removed_at) where removed_at is not null and email is not null;
      create unique index invitations_open on invitations (account_id, email_key)
        where accepted_at is null and withdrawn_at is null;
      alter table invitations add constraint invitations_address
        check (accepted_at is not null or withdrawn_at is not null or email_key is not null);
      create index invitations_ended on invitations ((coalesce(accepted_at, withdrawn_at, expires_at)));
      create index address_changes_expired on address_changes (expires_at);
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
      drop index address_changes_expired, invitations_ended, invitations_open, users_removed, users_left_stores,
        users_email_key;
      drop table company_sign_ins;
      alter table invitations drop email_key, drop is_mailed, drop accepted_by;
      create unique index invitations_open on invitations (account_id, lower(email))
        where accepted_at is null and withdrawn_at is null;
      update users set email = '' where email is null;
      alter table users drop constraint users_address, alter email set not null,
        drop email_key, drop email_confirmed_at, drop left_stores_at;
      create unique index users_email on users (lower(email)) where removed_at is null;
    `);
  }

  /** Of two users with one address the first keeps it. The other one, who still has tokens, needs a new one. */
  private async fillUsers(runner: QueryRunner): Promise<void> {
    const unkeyedIds = await this.fill(
      runner,
      'users',
      `select id, email, 0 as scope from users
       where removed_at is null and id > $1 order by id limit ${BATCH_SIZE}`,
    );
    if (unkeyedIds.length === 0) return;
    new Logger('migration').warn(
      `users ${unkeyedIds.join(', ')} cannot sign in: their address is none, or is that of another user. npm run -s cli -- user:set-email --email <the user's number> --to <address> gives them one`,
    );
  }

  /** An invitation to no address, or to one that was invited before, is withdrawn. */
  private async fillInvitations(runner: QueryRunner): Promise<void> {
    const unkeyedIds = await this.fill(
      runner,
      'invitations',
      `select id, email, account_id as scope from invitations
       where accepted_at is null and withdrawn_at is null and id > $1 order by id limit ${BATCH_SIZE}`,
    );
    await runner.query('update invitations set withdrawn_at = now() where id = any ($1)', [
      unkeyedIds,
    ]);
  }

  /** @returns the rows without a key of their own in their scope */
  private async fill(runner: QueryRunner, table: string, page: string): Promise<number[]> {
    const keys = new Set<string>();
    const unkeyedIds: number[] = [];
    for (let after = 0; ;) {
      const rows = (await runner.query(page, [after])) as Row[];
      const last = rows.at(-1);
      if (!last) return unkeyedIds;
      const keyedRows: { id: number; key: string }[] = [];
      for (const { id, email, scope } of rows) {
        const key = findEmailKey(email);
        if (key === undefined || keys.has(`${scope} ${key}`)) unkeyedIds.push(id);
        else {
          keys.add(`${scope} ${key}`);
          keyedRows.push({ id, key });
        }
      }
      await runner.query(
        `update ${table} t set email_key = k.key
         from unnest($1::bigint[], $2::text[]) as k (id, key) where t.id = k.id`,
        [keyedRows.map(({ id }) => id), keyedRows.map(({ key }) => key)],
      );
      after = last.id;
    }
  }
}
