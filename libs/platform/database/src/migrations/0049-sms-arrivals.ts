import type { MigrationInterface, QueryRunner } from 'typeorm';

/** What an SMS provider says later of a message that it has taken. */
export class SmsArrivals implements MigrationInterface {
  readonly name = 'SmsArrivals0000000000049';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      alter table card_messages
        -- null: not known
        add arrival text check (arrival in ('delivered', 'undelivered')),
        -- the provider's number for why not
        add arrival_code int;
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('alter table card_messages drop arrival, drop arrival_code');
  }
}
