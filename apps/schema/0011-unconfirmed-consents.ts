import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Adds to customers which consents wait for their confirmation, by which messages choose their channel, and to stores
 * whether the consents wait that are entered on their pages. Adds to signups whether an e-mail address was entered.
 */
export class UnconfirmedConsents implements MigrationInterface {
  readonly name = 'UnconfirmedConsents0000000000011';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(
      `alter table customers
         add column is_email_unconfirmed boolean
           generated always as (coalesce(state -> 'unconfirmedConsents' ? 'marketing', false)) stored,
         add column is_phone_unconfirmed boolean
           generated always as (coalesce(state -> 'unconfirmedConsents' ? 'sms', false)) stored`,
    );
    await runner.query(
      `alter table accounts add column confirms_counter_consents boolean
         generated always as (coalesce((state ->> 'confirmsCounterConsents')::boolean, false)) stored`,
    );
    await runner.query(
      'alter table signup_holds add column email_missing boolean not null default false',
    );
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('alter table signup_holds drop column email_missing');
    await runner.query('alter table accounts drop column confirms_counter_consents');
    await runner.query(
      'alter table customers drop column is_email_unconfirmed, drop column is_phone_unconfirmed',
    );
  }
}
