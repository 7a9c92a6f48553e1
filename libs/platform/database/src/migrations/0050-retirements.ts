import type { MigrationInterface, QueryRunner } from 'typeorm';

/** What was announced about the end of versions of the API (docs/adr/0059). */
export class Retirements implements MigrationInterface {
  readonly name = 'Retirements0000000000050';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      create table api_retirements (
        id bigint generated always as identity primary key,
        version text not null,
        -- when callers were first told, from which the twelve months count
        announced_at timestamptz not null,
        deprecated_at timestamptz not null,
        sunset_at timestamptz check (sunset_at >= deprecated_at),
        withdrawn_at timestamptz,
        -- whom there was to tell has been told: of the retirement, of its date, and of that date a month before
        told_at timestamptz,
        told_sunset_at timestamptz,
        reminded_of timestamptz
      );
      create unique index api_retirements_standing on api_retirements (version) where withdrawn_at is null;

      -- who was told what, each once
      create table api_retirement_notices (
        retirement_id bigint not null references api_retirements,
        occasion text not null check (occasion in ('announced', 'sunset', 'reminder')),
        -- of reminders: there is one for each date
        of_sunset timestamptz,
        user_id bigint not null references users,
        -- null: there was no mail server, so it is in the log alone
        mail_id uuid,
        recorded_at timestamptz not null,
        -- null: the mail waits
        ended_at timestamptz,
        outcome text check (outcome in ('sent', 'given_up')),
        unique nulls not distinct (retirement_id, occasion, of_sunset, user_id)
      );
      create unique index api_retirement_notices_mail on api_retirement_notices (mail_id)
        where mail_id is not null;

      alter table mail_outbox add give_up_at timestamptz not null;
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
      alter table mail_outbox drop give_up_at;
      drop table api_retirement_notices, api_retirements;
    `);
  }
}
