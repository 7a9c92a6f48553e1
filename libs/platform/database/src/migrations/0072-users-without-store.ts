import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Gives every user a time from which being without a store counts, those included who never had one. Null could mean either a
 * member or somebody whom nothing would ever remove.
 */
export class UsersWithoutStore implements MigrationInterface {
  readonly name = 'UsersWithoutStore0000000000072';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      drop index users_left_stores;
      update users set left_stores_at = now() where left_stores_at is null;
      alter table users
        -- when the user last left a store, or was created; whether there is another store, the memberships tell
        alter left_stores_at set default now(),
        alter left_stores_at set not null;
      create index users_left_stores on users (left_stores_at) where removed_at is null;
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
      drop index users_left_stores;
      alter table users alter left_stores_at drop not null, alter left_stores_at drop default;
      create index users_left_stores on users (left_stores_at)
        where removed_at is null and left_stores_at is not null;
    `);
  }
}
