import type { Command } from 'commander';
import type pg from 'pg';
import { Pool } from 'pg';
import { addExamples } from './command.js';
import { runScript } from './run-script.js';
import { withServices } from './script-services.js';

/** Records that a backup is complete: the alert BackupIsOld goes by the newest. @param takenAt moment that it holds */
export async function recordBackup(client: pg.Pool | pg.ClientBase, takenAt: Date): Promise<void> {
  await client.query('insert into backups (taken_at) values ($1)', [takenAt]);
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
        const takenAt = new Date();
        await withServices((app) => recordBackup(app.get(Pool), takenAt));
        console.log(JSON.stringify({ taken_at: takenAt.toISOString() }));
      });
    });
  addExamples(command, 'backup:record');
}
