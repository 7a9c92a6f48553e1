import type { MigrationInterface, QueryRunner } from 'typeorm';

/** How long the audit log keeps the address that an entry was made from. */
const ADDRESS_DAYS = 90;

/**
 * Seals mails that wait, and lets audit entries say from which address they were made. Mails that wait during the upgrade are
 * dropped: they are in clear, and a migration does not have the master key.
 */
export class SealedMailsAndAuditSources implements MigrationInterface {
  readonly name = 'SealedMailsAndAuditSources0000000000067';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      update api_retirement_notices n set ended_at = now(), outcome = 'given_up'
      from mail_outbox m where m.id = n.mail_id;
      delete from mail_outbox;
      alter table mail_outbox
        drop recipient, drop subject, drop body,
        -- the whole mail
        add sealed bytea not null;
      create trigger mail_outbox_sealed_key before insert or update of sealed on mail_outbox
        for each row execute function refuse_retired_key('sealed');

      alter table audit_log add ip_address inet;
      create index audit_log_ip_address on audit_log (recorded_at) where ip_address is not null;

      -- how often something was repeated in its hour; only the first and every tenth power is an audit entry
      create table audit_repetitions (
        key bytea primary key,
        times bigint not null,
        until timestamptz not null
      );
      create index audit_repetitions_until on audit_repetitions (until);

      -- an address is personal: it goes after a while, and nothing else ever changes
      create function es.refuse_audit_update() returns trigger language plpgsql as $$
      begin
        if new.ip_address is null and old.recorded_at < now() - interval '${ADDRESS_DAYS} days'
          and to_jsonb(new) - 'ip_address' = to_jsonb(old) - 'ip_address'
        then return new; end if;
        raise exception 'audit entries are never changed or removed (% refused)', tg_op using errcode = 'IP003';
      end $$;
      drop trigger audit_log_is_final on audit_log;
      create trigger audit_log_is_final before delete or truncate on audit_log
        for each statement execute function es.refuse_audit_change();
      create trigger audit_log_is_not_changed before update on audit_log
        for each row execute function es.refuse_audit_update();
      -- always: replication roles would otherwise pass them by
      alter table audit_log enable always trigger audit_log_is_final;
      alter table audit_log enable always trigger audit_log_is_not_changed;

      -- the processes' role may not update the table
      create function es.forget_audit_addresses(most int) returns int
      language sql security definer set search_path = public, pg_temp as $$
        with due as (
          select id from audit_log
          where ip_address is not null and recorded_at < now() - interval '${ADDRESS_DAYS} days'
          order by recorded_at limit most
        ), forgotten as (
          update audit_log l set ip_address = null from due where l.id = due.id returning l.id
        )
        select count(*)::int from forgotten
      $$;
      revoke execute on function es.forget_audit_addresses from public;
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
      drop function es.forget_audit_addresses;
      drop trigger audit_log_is_not_changed on audit_log;
      drop function es.refuse_audit_update;
      drop trigger audit_log_is_final on audit_log;
      create trigger audit_log_is_final before update or delete or truncate on audit_log
        for each statement execute function es.refuse_audit_change();
      alter table audit_log enable always trigger audit_log_is_final;
      drop table audit_repetitions;
      alter table audit_log drop ip_address;

      delete from mail_outbox;
      drop trigger mail_outbox_sealed_key on mail_outbox;
      alter table mail_outbox
        drop sealed, add recipient text not null, add subject text not null, add body text not null;
    `);
  }
}
