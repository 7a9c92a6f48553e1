import type { Command } from 'commander';
import { Pool } from 'pg';
import { ConfigError } from '#platform/kernel/config-error.js';
import { query } from '#platform/database/connection.js';
import {
  AuditedWrites,
  type AuditedWriter,
} from '#platform/event-store/commands/audited-writes.service.js';
import { runCommand } from './command.js';
import { runProgram } from '../run-program.js';
import { withServices } from '../command-services.js';

type Retirement = {
  version: string;
  announced_at: Date;
  deprecation_date: Date;
  sunset_date: Date | null;
};

const STANDING = `
  select version, announced_at, deprecated_at as deprecation_date, sunset_at as sunset_date
  from api_retirements where withdrawn_at is null`;

/** Oldest first. `logged`: there was no mail server, so it is in the log alone. */
const ANNOUNCEMENTS = `
  select n.occasion, n.sunset_at as sunset_date, n.user_id, u.email, n.recorded_at, n.mail_id,
    case when n.mail_id is null then 'logged' else coalesce(n.outcome, 'waiting') end as state, n.ended_at
  from api_retirement_announcements n
  join api_retirements r on r.id = n.retirement_id and r.withdrawn_at is null
  join users u on u.id = n.user_id
  order by n.recorded_at, n.user_id`;

/** Commands about the announced retirement of v1. */
export function addRetirementCommands(program: Command, by: AuditedWriter): void {
  program
    .command('retirement:show')
    .description('shows since when the retirement of v1 is announced, and its dates')
    .action(() => {
      runCommand(async (_, app) => {
        const { rows } = await app.get(Pool).query<Retirement>(STANDING);
        return { retirement: rows[0] ?? null };
      });
    });

  program
    .command('retirement:announcements')
    .description('lists the users who were notified, one per line, and the state of each e-mail')
    .action(() => {
      runProgram(async () => {
        const { rows } = await withServices((app) => app.get(Pool).query<object>(ANNOUNCEMENTS));
        for (const row of rows) console.log(JSON.stringify(row));
      });
    });

  program
    .command('retirement:withdraw')
    .description(
      'withdraws the announced retirement of v1; remove its dates from the settings afterwards',
    )
    .action(() => {
      runProgram(async () => {
        const withdrawn = await withServices((app) => withdraw(app.get(AuditedWrites), by));
        console.log(JSON.stringify({ withdrawn }));
        console.error(
          'done: remove API_V1_DEPRECATION_DATE and API_V1_SUNSET_DATE from the settings of every api, and restart it; otherwise its next start announces the retirement again',
        );
      });
    });
}

/** @throws ConfigError when nothing is announced */
function withdraw(writes: AuditedWrites, by: AuditedWriter): Promise<Retirement> {
  return writes.write(by, async (transaction) => {
    const { manager, isRepeated } = transaction;
    const [standing] = await query<Retirement>(manager, `${STANDING} for update`);
    if (standing) {
      await query(manager, {
        text: 'update api_retirements set withdrawn_at = now() where withdrawn_at is null',
      });
      const subject = { version: standing.version };
      const type = 'api_version.retirement_withdrawn';
      await transaction.audit({ accountIds: [], type, subject });
      return standing;
    }
    const [last]: Retirement[] = isRepeated
      ? await query(manager, {
          text: `${STANDING.replace('is null', 'is not null')} order by withdrawn_at desc limit 1`,
        })
      : [];
    if (!last)
      throw new ConfigError('No retirement of v1 is announced, so there is nothing to withdraw.');
    return last;
  });
}
