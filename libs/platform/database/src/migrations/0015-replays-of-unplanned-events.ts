import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Replays and resumes go by the log's head, not by what has been planned of it (docs/adr/0025). */
export class ReplaysOfUnplannedEvents implements MigrationInterface {
  readonly name = 'ReplaysOfUnplannedEvents0000000000015';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      alter table webhook_replays
        -- null until all up to log_head has been planned
        alter last_seq drop not null,
        -- the log's position when it was asked for
        add log_head text not null,
        -- the same when it is asked for again after an unknown outcome
        add request uuid not null;
      create index webhook_replays_subscription on webhook_replays (subscription_id);

      -- log positions between which a subscription was enabled: events of then may be planned after its pause
      create table webhook_active_spans (
        id bigint generated always as identity primary key,
        subscription_id bigint not null references webhook_subscriptions (id) on delete cascade,
        active_from text not null,
        active_until text not null
      );
      create index webhook_active_spans_subscription on webhook_active_spans (subscription_id, id);
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
      drop table webhook_active_spans;
      drop index webhook_replays_subscription;
      delete from webhook_replays where last_seq is null;
      alter table webhook_replays drop log_head, drop request, alter last_seq set not null;
    `);
  }
}
