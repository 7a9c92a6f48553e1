import type { MigrationInterface, QueryRunner } from 'typeorm';

/** People sign in: sessions, and what belongs to passwords and second factors. */
export class Sessions implements MigrationInterface {
  readonly name = 'Sessions0000000000042';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      create table sessions (
        id bigint generated always as identity primary key,
        user_id bigint not null references users (id),
        sha256 bytea not null unique check (octet_length(sha256) = 32),
        -- the password was right, and a code of the second factor is still to come
        awaits_code boolean not null,
        created_at timestamptz not null,
        seen_at timestamptz not null,
        expires_at timestamptz not null
      );
      create index sessions_user on sessions (user_id);

      -- counted for an address whether there is such a user or not, under a keyed hash
      create table sign_in_failures (
        key bytea primary key,
        failures int not null,
        until timestamptz not null
      );
      create index sign_in_failures_until on sign_in_failures (until);

      -- browsers that somebody has signed in with: they are counted apart from all others
      create table known_browsers (
        user_id bigint not null references users (id),
        sha256 bytea not null,
        seen_at timestamptz not null,
        primary key (user_id, sha256)
      );

      create table password_resets (
        sha256 bytea primary key,
        user_id bigint not null references users (id),
        created_at timestamptz not null,
        expires_at timestamptz not null,
        used_at timestamptz
      );
      create index password_resets_user on password_resets (user_id, created_at);

      create table second_factors (
        user_id bigint primary key references users (id),
        -- sealed with the master key
        secret bytea not null,
        -- null while it is being set up
        confirmed_at timestamptz,
        -- of the last code that was taken, the number of its 30 seconds: no code is taken twice
        last_step bigint not null default 0,
        created_at timestamptz not null
      );

      create table recovery_codes (
        sha256 bytea primary key,
        user_id bigint not null references users (id),
        used_at timestamptz
      );
      create index recovery_codes_user on recovery_codes (user_id);
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(
      'drop table recovery_codes, second_factors, password_resets, known_browsers, sign_in_failures, sessions',
    );
  }
}
