import type { MigrationInterface, QueryRunner } from 'typeorm';

const COLUMNS = [
  ['personal_keys', 'wrapped'],
  ['webhook_subscriptions', 'secret'],
  ['webhook_subscriptions', 'previous_secret'],
] as const;

export class MasterKeys implements MigrationInterface {
  readonly name = 'MasterKeys0000000000013';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      -- which master key seals; previous: one that is being rotated out, whose values are still accepted
      create table master_key (
        only_one boolean primary key default true check (only_one),
        fingerprint bytea not null check (octet_length(fingerprint) = 32),
        previous bytea check (octet_length(previous) = 32),
        since timestamptz not null default now()
      );

      -- keys that are never replaced, such as those of hashes, sealed with the master key
      create table data_keys (
        purpose text primary key,
        sealed bytea not null
      );

      create function refuse_retired_key() returns trigger language plpgsql as $$
      declare
        given bytea := to_jsonb(new) ->> tg_argv[0];
      begin
        if given is null or not exists (select from master_key) then return new; end if;
        perform from master_key k
        where substring(given from 1 for 8) in (
            '\\x696e6b01'::bytea || substring(k.fingerprint from 1 for 4),
            '\\x696e6b01'::bytea || substring(k.previous from 1 for 4));
        if not found then
          raise exception 'sealed with a master key that has been rotated out';
        end if;
        return new;
      end $$;
    `);
    for (const [table, column] of COLUMNS) {
      await runner.query(`
        create trigger ${table}_${column}_key before insert or update of ${column} on ${table}
          for each row execute function refuse_retired_key('${column}')
      `);
    }
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const [table, column] of COLUMNS) {
      await runner.query(`drop trigger ${table}_${column}_key on ${table}`);
    }
    await runner.query('drop function refuse_retired_key; drop table data_keys, master_key');
  }
}
