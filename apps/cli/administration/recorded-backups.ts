import type { Command } from 'commander';
import type pg from 'pg';
import { Pool } from 'pg';
import { runCommand } from './command.js';
import { addExamples } from '../command-line.js';

/**
 * Records that a backup is complete: the alert BackupIsOld goes by the newest.
 * @param takenAt moment that it holds, by default now
 */
export async function recordBackup(
  client: pg.Pool | pg.ClientBase,
  takenAt?: Date,
): Promise<Date | undefined> {
  const { rows } = await client.query<{ taken_at: Date }>(
    'insert into backups (taken_at) values (coalesce($1, now())) returning taken_at',
    [takenAt],
  );
  return rows[0]?.taken_at;
}

/** Adds the command for backups that other programs make. */
export function addBackupCommands(program: Command): void {
  const command = program
    .command('backup:record')
    .description(
      'records that a backup by other means is complete, for the alert BackupIsOld; inkpad backup does so itself',
    )
    .action(() => {
      runCommand(async (_, app) => ({ taken_at: await recordBackup(app.get(Pool)) }));
    });
  addExamples(command, 'backup:record');
}
