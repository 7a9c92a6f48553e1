import type { MigrationInterface, QueryRunner } from 'typeorm';
import { RECORD } from '../row-table.js';

/** A function for commits of one stream. */
export class LoneCommits implements MigrationInterface {
  readonly name = 'LoneCommits0000000000052';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(RECORD);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('drop function es.record');
  }
}
