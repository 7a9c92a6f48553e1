import { readdir, readFile } from 'node:fs/promises';
import type { MigrationInterface, QueryRunner } from 'typeorm';

const FOLDER = new URL('0001-baseline/', import.meta.url);

/** Creates the whole schema of the first release, from the SQL files of the folder beside it, in the order of their names. */
export class Baseline implements MigrationInterface {
  readonly name = 'Baseline0000000000001';

  async up(runner: QueryRunner): Promise<void> {
    for (const file of (await readdir(FOLDER)).sort()) {
      await runner.query(await readFile(new URL(file, FOLDER), 'utf8'));
    }
  }

  /** Refuses: no tool drops events. */
  async down(): Promise<void> {
    throw new Error('the first migration cannot be reverted: restore a backup instead');
  }
}
