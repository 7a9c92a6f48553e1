import { Injectable, Logger, type OnModuleInit } from '@nestjs/common';
import pg, { Pool } from 'pg';
import { findChanges } from '#platform/kernel/changes.js';
import { ConfigError } from '#platform/kernel/config-error.js';
import { PlatformConfig } from '#platform/kernel/platform-config.js';
import { createId } from '#platform/kernel/randomness.js';
import {
  decideRetirementStep,
  renderDate,
  type Announcement,
} from '#platform/kernel/retirement.js';
import { auditBySystem } from '#platform/database/audit-log.js';
import { inTransaction } from '#platform/database/connection.js';
import { LOCKS } from '#platform/database/locks.js';
import { findDatabaseError, SQLSTATE } from '#platform/database/sqlstate.js';

const FIND_ANNOUNCEMENT = `
  select now() as now, r.id, r.announced_at, r.deprecated_at, r.sunset_at
  from (select) one left join api_retirements r on r.version = 'v1' and r.withdrawn_at is null`;

const AUDIT = auditBySystem('(select) one', {
  accountId: 'null::bigint',
  type: '$1',
  requestId: '$2',
  subject: '$3::jsonb',
});

type Row = {
  now: Date;
  id: number | null;
  announced_at: Date;
  deprecated_at: Date;
  sunset_at: Date | null;
};

/**
 * Records when callers were first told that the version is being retired, and the dates that they were told last
 * (VER-13, VER-14).
 */
@Injectable()
export class RetirementRecord implements OnModuleInit {
  private readonly log = new Logger('versions');

  constructor(
    private readonly pool: Pool,
    private readonly config: PlatformConfig,
  ) {}

  /** @throws ConfigError when the settings would break an announcement */
  async onModuleInit(): Promise<void> {
    try {
      const message = await inTransaction(this.pool, (client) => this.compare(client));
      if (message !== undefined) this.log.log(message);
    } catch (error) {
      if (findDatabaseError(error)?.code !== SQLSTATE.undefinedTable) throw error;
      // Without its tables nothing was announced; readiness says what is missing.
      if (this.config.v1.deprecatedAt === null) return;
      throw new ConfigError('Tables are missing in the database: run inkpad migrate first.', {
        cause: error,
      });
    }
  }

  /**
   * Compares the stored announcement with the settings and updates it.
   * @returns a message to log after the commit
   */
  private async compare(client: pg.PoolClient): Promise<string | undefined> {
    // So that two processes that start at once announce once.
    await client.query('select pg_advisory_xact_lock($1)', [LOCKS.retirement]);
    const { rows } = await client.query<Row>(FIND_ANNOUNCEMENT);
    const [row] = rows;
    if (!row) throw new Error('the left join has one row');
    const { deprecatedAt, sunsetAt } = this.config.v1;
    const dates = deprecatedAt && { deprecatedAt, sunsetAt };
    const step = decideRetirementStep(dates, toAnnouncement(row), row.now);
    if (step.kind === 'refuse') throw new ConfigError(step.reason);
    if (step.kind === 'none' || dates === null) return undefined;
    if (step.kind === 'announce') {
      await client.query(
        `insert into api_retirements (version, announced_at, deprecated_at, sunset_at)
         values ('v1', $1, $2, $3)`,
        [row.now, deprecatedAt, sunsetAt],
      );
    } else {
      await client.query(
        'update api_retirements set deprecated_at = $2, sunset_at = $3 where id = $1',
        [row.id, deprecatedAt, sunsetAt],
      );
    }
    const isNew = step.kind === 'announce';
    const type = isNew ? 'api_version.retirement_announced' : 'api_version.retirement_changed';
    const former = { deprecatedAt: row.deprecated_at, sunsetAt: row.sunset_at };
    await audit(client, type, dates, row.id === null ? null : former);
    const end = sunsetAt ? `retired from ${renderDate(sunsetAt)}` : 'without an end yet';
    return `the retirement of v1 was ${isNew ? 'announced' : 'changed'}: deprecated from ${renderDate(dates.deprecatedAt)}, ${end}`;
  }
}

function toAnnouncement(row: Row): Announcement | undefined {
  if (row.id === null) return undefined;
  return {
    announcedAt: row.announced_at,
    deprecatedAt: row.deprecated_at,
    sunsetAt: row.sunset_at,
  };
}

async function audit(
  client: pg.PoolClient,
  type: string,
  dates: Dates,
  former: Dates | null,
): Promise<void> {
  const datesAfter = toDatesJson(dates);
  const subject = {
    version: 'v1',
    ...(former ? { changes: findChanges(toDatesJson(former), datesAfter) } : datesAfter),
  };
  await client.query(AUDIT, [type, createId(), JSON.stringify(subject)]);
}

type Dates = { deprecatedAt: Date; sunsetAt: Date | null };

function toDatesJson({ deprecatedAt, sunsetAt }: Dates) {
  return { deprecation_date: deprecatedAt, sunset_date: sunsetAt };
}
