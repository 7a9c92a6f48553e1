import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Roles, invitations, tokens that expire and say when they were last used, and a number that every change of rights
 * raises, so that no process goes on with what it has cached (docs/adr/0050).
 */
export class Roles implements MigrationInterface {
  readonly name = 'Roles0000000000043';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      alter table memberships
        add role text not null check (role in ('owner', 'manager', 'staff')),
        -- it is this user's own store
        add personal boolean not null default false;
      create unique index memberships_personal on memberships (account_id) where personal;

      alter table api_tokens
        add expires_at timestamptz,
        -- to the minute
        add last_used_at timestamptz;

      create table invitations (
        id bigint generated always as identity primary key,
        account_id bigint not null,
        email text not null,
        role text not null check (role in ('owner', 'manager', 'staff')),
        -- of the secret in the link
        sha256 bytea not null unique check (octet_length(sha256) = 32),
        invited_by bigint not null references users (id),
        created_at timestamptz not null,
        expires_at timestamptz not null,
        accepted_at timestamptz,
        withdrawn_at timestamptz
      );
      create unique index invitations_open on invitations (account_id, lower(email))
        where accepted_at is null and withdrawn_at is null;
    `);
    await this.watchRights(runner);
  }

  /**
   * One row that changes with every change of who may do what, in the same transaction. Raised at the commit, so that
   * its lock is held for no longer and is always the last one taken.
   */
  private async watchRights(runner: QueryRunner): Promise<void> {
    await runner.query(`
      create table rights_version (version bigint not null);
      insert into rights_version values (1);

      create function raise_rights_version() returns trigger language plpgsql as $$
      begin
        update rights_version set version = version + 1;
        return null;
      end $$;

      create constraint trigger rights_of_user after update on users
        deferrable initially deferred for each row
        when (old.removed_at is distinct from new.removed_at)
        execute function raise_rights_version();
      create constraint trigger rights_of_member after update or delete on memberships
        deferrable initially deferred for each row
        execute function raise_rights_version();
      create constraint trigger rights_of_token after update on api_tokens
        deferrable initially deferred for each row
        when ((old.revoked_at, old.expires_at, old.per_minute, old.user_id)
          is distinct from (new.revoked_at, new.expires_at, new.per_minute, new.user_id))
        execute function raise_rights_version();
      create constraint trigger rights_without_token after delete on api_tokens
        deferrable initially deferred for each row
        execute function raise_rights_version();
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
      drop table invitations;
      drop trigger rights_of_user on users;
      drop trigger rights_of_member on memberships;
      drop trigger rights_of_token on api_tokens;
      drop trigger rights_without_token on api_tokens;
      drop function raise_rights_version();
      drop table rights_version;
      alter table api_tokens drop expires_at, drop last_used_at;
      alter table memberships drop personal, drop role;
    `);
  }
}
