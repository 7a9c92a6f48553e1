import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * PostgreSQL reads the expression of a check anew for each statement, and a commit has one for each stream. Revisions and
 * hashes are only written by `es.commit` and `es.record`, and `verify` recomputes every one of them.
 */
export class UncheckedHashes implements MigrationInterface {
  readonly name = 'UncheckedHashes0000000000054';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      alter table es.streams drop constraint streams_revision_check, drop constraint streams_hash_check;
      alter table es.events drop constraint events_hash_check;
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
      alter table es.events add constraint events_hash_check check (octet_length(hash) = 32);
      alter table es.streams
        add constraint streams_revision_check check (revision >= 0),
        add constraint streams_hash_check check (octet_length(hash) = 32);
    `);
  }
}
