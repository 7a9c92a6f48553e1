import { setTimeout as wait } from 'node:timers/promises';
import { InvalidArgumentError, type Command } from 'commander';
import { Pool } from 'pg';
import { query } from '#platform/database/connection.js';
import { FIND_MAINTENANCE, type MaintenanceRow } from '#platform/database/maintenance.service.js';
import {
  AuditedWrites,
  type AuditedWriter,
} from '#platform/event-store/commands/audited-writes.service.js';
import { runCommand } from './command.js';
import { runProgram } from '../run-program.js';
import { withServices } from '../command-services.js';
import { addExamples } from '../command-line.js';

const MAX_REASON_CHARACTERS = 200;
/** As long as a process goes by what it has read, and a moment for the read. */
const KNOWN_AFTER_MS = 1_200;

/** A second `maintenance:on` changes the reason alone. */
const TURN_ON = `
  insert into maintenance (reason) values ($1)
  on conflict (singleton) do update set reason = excluded.reason
  returning reason, since`;

/** Commands that turn maintenance mode on and off. */
export function addMaintenanceCommands(program: Command, by: AuditedWriter): void {
  addExamples(
    program
      .command('maintenance:on')
      .description(
        'refuses every request that writes, in all api processes; reading goes on, and imports wait',
      )
      .option('--reason <text>', 'shown to callers of the API', parseReason)
      .action(({ reason }: { reason?: string }) => {
        runProgram(async () => {
          const current = await withServices((app) =>
            turnOn(app.get(AuditedWrites), by, reason ?? null),
          );
          await wait(KNOWN_AFTER_MS);
          console.log(JSON.stringify({ maintenance: current }));
          console.error('done: requests that had begun before still finish');
        });
      }),
    'maintenance:on --reason "New database until 14:00 UTC"',
  );

  addExamples(
    program
      .command('maintenance:off')
      .description('accepts requests that write again')
      .action(() => {
        runCommand(async (_, app) => {
          await turnOff(app.get(AuditedWrites), by);
          return { maintenance: null };
        });
      }),
    'maintenance:off',
  );

  addExamples(
    program
      .command('maintenance:status')
      .description('shows since when maintenance mode is on, and the reason')
      .action(() => {
        runCommand(async (_, app) => {
          const { rows } = await app.get(Pool).query<MaintenanceRow>(FIND_MAINTENANCE);
          return { maintenance: rows[0] ?? null };
        });
      }),
    'maintenance:status',
  );
}

function turnOn(
  writes: AuditedWrites,
  by: AuditedWriter,
  reason: string | null,
): Promise<MaintenanceRow> {
  return writes.write(by, async (transaction) => {
    const [current] = await query<MaintenanceRow>(transaction.manager, TURN_ON, [reason]);
    if (!current) throw new Error('the insert returned no row');
    await transaction.audit({ accountIds: [], type: 'maintenance.started', subject: { reason } });
    return current;
  });
}

/** Turns it off; where it is off already, there is nothing to record. */
function turnOff(writes: AuditedWrites, by: AuditedWriter): Promise<void> {
  return writes.write(by, async (transaction) => {
    const [former] = await query<{ since: Date }>(transaction.manager, {
      text: 'delete from maintenance returning since',
    });
    if (!former) return;
    const subject = { since: former.since };
    await transaction.audit({ accountIds: [], type: 'maintenance.ended', subject });
  });
}

function parseReason(text: string): string {
  const reason = text.trim();
  if (reason === '' || reason.length > MAX_REASON_CHARACTERS || /\p{C}/u.test(reason)) {
    throw new InvalidArgumentError(
      `must be one line of at most ${MAX_REASON_CHARACTERS} characters`,
    );
  }
  return reason;
}
