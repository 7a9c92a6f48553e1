import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Identifies people by a key of their address that the application computes, so that no locale of a database decides who
 * is who (ADR-0088). Remembers which addresses were confirmed, and which account of a company signs in as which user.
 */
export class EmailKeys implements MigrationInterface {
  readonly name = 'EmailKeys0000000000065';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      alter table users
        -- what addresses are compared by
        add email_key text collate "C",
        -- by a link in a mail to it, or by a company
        add email_confirmed_at timestamptz,
        -- since when the user has belonged to no store, after belonging to one
        add left_stores_at timestamptz,
        -- an address is deleted some time after its user was removed
        alter email drop not null,
        add constraint users_address check (
          (removed_at is not null or email is not null) and (email is null) = (email_key is null));
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
}
