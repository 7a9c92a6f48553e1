import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Addresses that users want, until a link in a mail to them is opened. */
export class AddressChanges implements MigrationInterface {
  readonly name = 'AddressChanges0000000000056';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      create table address_changes (
        sha256 bytea primary key,
        user_id bigint not null references users (id),
        email text not null,
        created_at timestamptz not null,
        expires_at timestamptz not null,
        used_at timestamptz
      );
      create index address_changes_user on address_changes (user_id, created_at);
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('drop table address_changes');
  }
}
