import type { MigrationInterface, QueryRunner } from 'typeorm';

/** The audit log is listed by type and by who it was. */
export class AuditLists implements MigrationInterface {
  readonly name = 'AuditLists0000000000024';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      create index audit_log_type on audit_log (account_id, type, id);
      create index audit_log_actor on audit_log
        (account_id, ((actor ->> 'type') || ':' || (actor ->> 'id')), id);
      create index audit_log_time on audit_log (account_id, recorded_at, id);
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('drop index audit_log_type, audit_log_actor, audit_log_time');
  }
}
