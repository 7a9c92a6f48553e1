import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Which iPhones keep which passes. */
export class AppleDevices implements MigrationInterface {
  readonly name = 'AppleDevices0000000000037';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      create table apple_devices (
        id bigint generated always as identity primary key,
        -- SHA-256: whoever knows the identifier itself may ask which passes the device has.
        library_hash bytea not null,
        pass_type_id text not null,
        push_token text not null,
        -- When the device last named it.
        token_since timestamptz not null default now(),
        unique (library_hash, pass_type_id)
      );
      -- No foreign key to customer cards: rebuilding exchanges their rows.
      create table apple_registrations (
        device_id bigint not null references apple_devices on delete cascade,
        customer_card_id bigint not null,
        account_id bigint not null,
        registered_at timestamptz not null default now(),
        primary key (device_id, customer_card_id)
      );
      create index apple_registrations_card on apple_registrations (customer_card_id, registered_at);
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('drop table apple_registrations, apple_devices');
  }
}
