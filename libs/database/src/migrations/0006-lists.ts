import type { MigrationInterface, QueryRunner } from 'typeorm';

const REWARDS = `
-- the order in which a store's rewards are listed
create index rewards_order on rewards (account_id, card_id, ((state ->> 'position')::bigint),
                                       ((state ->> 'stampsRequired')::bigint), id)
  where state ->> 'deletedAt' is null;
`;

export class Lists implements MigrationInterface {
  readonly name = 'Lists0000000000006';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(REWARDS);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('drop index rewards_order');
  }
}
