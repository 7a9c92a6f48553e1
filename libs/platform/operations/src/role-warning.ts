import { Injectable, Logger, type OnApplicationBootstrap } from '@nestjs/common';
import { Pool } from 'pg';
import { getErrorMessage } from '#kernel/errors.js';
import { canRewriteHistory } from '#database/roles.js';

/** Warns when the process could rewrite the history, as with one database role for everything. */
@Injectable()
export class RoleWarning implements OnApplicationBootstrap {
  private readonly log = new Logger('roles');

  constructor(private readonly pool: Pool) {}

  async onApplicationBootstrap(): Promise<void> {
    try {
      const { role, mayRewrite } = await canRewriteHistory(this.pool);
      if (!mayRewrite) return;
      this.log.warn(
        `The database role ${role} could change the history without a trace. Set DATABASE_MIGRATION_URL to it, DATABASE_URL to a role that owns nothing, and run npm run migrate (docs/operating.md, Database roles).`,
      );
    } catch (error) {
      // Readiness reports what is wrong with the database.
      this.log.debug(
        `the rights of the database role could not be read: ${getErrorMessage(error)}`,
      );
    }
  }
}
