import type { MigrationInterface, QueryRunner } from 'typeorm';

export class Identity implements MigrationInterface {
  readonly name = 'Identity0000000000002';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      create table users (
        id bigint generated always as identity primary key,
        email text not null,
        name text not null,
        password_hash text not null,
        created_at timestamptz not null,
        removed_at timestamptz
      );
      create unique index users_email on users (lower(email)) where removed_at is null;

      create table memberships (
        user_id bigint not null references users (id),
        account_id bigint not null,
        created_at timestamptz not null,
        primary key (user_id, account_id)
      );
      create index memberships_account on memberships (account_id);

      create table api_tokens (
        id bigint generated always as identity primary key,
        user_id bigint not null references users (id),
        name text not null,
        sha256 bytea not null unique check (octet_length(sha256) = 32),
        per_minute int check (per_minute > 0),
        created_at timestamptz not null,
        revoked_at timestamptz
      );
      create index api_tokens_user on api_tokens (user_id);

      create table audit_log (
        id bigint generated always as identity primary key,
        account_id bigint,
        type text not null,
        actor jsonb not null,
        channel text not null,
        request_id text not null,
        subject jsonb not null,
        recorded_at timestamptz not null
      );
      create index audit_log_account on audit_log (account_id, id);
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('drop table audit_log, api_tokens, memberships, users');
  }
}
