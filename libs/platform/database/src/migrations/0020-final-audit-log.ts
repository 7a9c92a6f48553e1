import type { MigrationInterface, QueryRunner } from 'typeorm';

/** What people did to plain records is evidence, as events are: added to and never changed, whatever the role. */
export class FinalAuditLog implements MigrationInterface {
  readonly name = 'FinalAuditLog0000000000020';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      create function es.refuse_audit_change() returns trigger language plpgsql as $$
      begin
        raise exception 'audit entries are never changed or removed (% refused)', tg_op using errcode = 'IP003';
      end $$;
      create trigger audit_log_is_final before update or delete or truncate on audit_log
        for each statement execute function es.refuse_audit_change();
      -- always: replication roles would otherwise pass it by
      alter table audit_log enable always trigger audit_log_is_final;
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
      drop trigger audit_log_is_final on audit_log;
      drop function es.refuse_audit_change();
    `);
  }
}
