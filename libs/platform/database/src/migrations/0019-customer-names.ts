import type { MigrationInterface, QueryRunner } from 'typeorm';

/** What other contexts read of a customer. A view: as columns, personal data would be stored twice. */
export class CustomerNames implements MigrationInterface {
  readonly name = 'CustomerNames0000000000019';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      create view customer_names as
        select id, state ->> 'firstName' as first_name, state ->> 'lastName' as last_name,
          state ->> 'email' as email, state ->> 'phone' as phone
        from customers
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('drop view customer_names');
  }
}
