import { Injectable, Logger, type OnApplicationBootstrap } from '@nestjs/common';
import { Pool } from 'pg';
import { getErrorMessage } from '#platform/kernel/errors.js';
import { canRewriteHistory } from '#platform/database/roles.js';
import { findUnsafeLogSettings } from '#platform/database/server-log.js';
import { LOG_SETTINGS } from '#platform/database/session.js';

/** Warns when the process could rewrite the history, or PostgreSQL would write personal values to its log. */
@Injectable()
export class DatabaseWarnings implements OnApplicationBootstrap {
  private readonly log = new Logger('database');

  constructor(private readonly pool: Pool) {}

  async onApplicationBootstrap(): Promise<void> {
    // Readiness reports what is wrong with the database.
    const ignore = (error: unknown) =>
      this.log.debug(`role or settings could not be read: ${getErrorMessage(error)}`);
    await this.warnOfRole().catch(ignore);
    await this.warnOfLog().catch(ignore);
  }

  private async warnOfRole(): Promise<void> {
    const { role, mayRewrite } = await canRewriteHistory(this.pool);
    if (!mayRewrite) return;
    this.log.warn(
      `The database role ${role} could change the history without a trace. Set DATABASE_MIGRATION_URL to it, DATABASE_URL to a role that owns nothing, and run inkpad migrate (docs/operating/configure.md, Database roles).`,
    );
  }

  private async warnOfLog(): Promise<void> {
    const settings = await findUnsafeLogSettings(this.pool);
    if (settings.length === 0) return;
    const list = settings
      .map(({ name, value, expected }) => `${name} is ${value}, not ${expected}`)
      .join('; ');
    const names = Object.keys(LOG_SETTINGS).join(', ');
    this.log.warn(
      `PostgreSQL may write personal data to its log: ${list}. Change the server's settings, or let the role of DATABASE_URL set ${names} itself (docs/operating/configure.md, PostgreSQL's log).`,
    );
  }
}
