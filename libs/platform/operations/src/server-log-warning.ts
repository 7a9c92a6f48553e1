import { Injectable, Logger, type OnApplicationBootstrap } from '@nestjs/common';
import { Pool } from 'pg';
import { getErrorMessage } from '#kernel/errors.js';
import { findUnsafeLogSettings } from '#database/server-log.js';
import { LOG_SETTINGS } from '#database/session.js';

/** Warns when PostgreSQL would write personal values of our statements to its log. */
@Injectable()
export class ServerLogWarning implements OnApplicationBootstrap {
  private readonly log = new Logger('database');

  constructor(private readonly pool: Pool) {}

  async onApplicationBootstrap(): Promise<void> {
    try {
      const settings = await findUnsafeLogSettings(this.pool);
      if (settings.length === 0) return;
      const list = settings
        .map(({ name, value, expected }) => `${name} is ${value}, not ${expected}`)
        .join('; ');
      const names = Object.keys(LOG_SETTINGS).join(', ');
      this.log.warn(
        `PostgreSQL may write personal data to its log: ${list}. Change the server's settings, or let the role of DATABASE_URL set ${names} itself (docs/operating.md, PostgreSQL's log).`,
      );
    } catch (error) {
      // Readiness reports what is wrong with the database.
      this.log.debug(
        `the log settings of the database could not be read: ${getErrorMessage(error)}`,
      );
    }
  }
}
