import type { Command } from 'commander';
import type pg from 'pg';
import { Pool } from 'pg';
import { addExamples } from './command.js';
import { runScript } from './run-script.js';
import { withServices } from './script-services.js';

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
      'records that a backup by other means is complete, for the alert BackupIsOld; npm run backup does so itself',
    )
    .action(() => {
      runScript(async () => {
        const takenAt = await withServices((app) => recordBackup(app.get(Pool)));
        console.log(JSON.stringify({ taken_at: takenAt }));
      });
    });
  addExamples(command, 'backup:record');
}
