import type { MigrationInterface, QueryRunner } from 'typeorm';

/** What became of the mails about a retirement. */
export class RetirementOutcomes implements MigrationInterface {
  readonly name = 'RetirementOutcomes0000000000050';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      alter table api_retirement_notices
        -- null: the mail waits
        add if not exists ended_at timestamptz,
        add if not exists outcome text check (outcome in ('sent', 'given_up'));
      create unique index if not exists api_retirement_notices_mail on api_retirement_notices (mail_id)
        where mail_id is not null;
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
      drop index api_retirement_notices_mail;
      alter table api_retirement_notices drop ended_at, drop outcome;
    `);
  }
}
