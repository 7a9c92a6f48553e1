import { Logger } from '@nestjs/common';
import { getErrorMessage } from '#kernel/errors.js';
import type { LimitedStatement } from '#database/database-client.js';
import { Notifications } from '#database/notifications.js';

export const IDENTITY_CHANNEL = 'inkpad_identity';

const POLL_INTERVAL_MS = 300;
/** Trusts a check for so long that, with the check, the request and a busy moment, a change counts within a second. */
const CURRENT_FOR_MS = 800;

/** A standby may be behind. */
const VERSION: LimitedStatement = {
  text: 'select version from rights_version where not pg_is_in_recovery()',
  query_timeout: 5_000,
};

/**
 * Tells whether cached users, memberships and tokens are current. A notification clears the cache within moments of a
 * change. Since one may get lost, a version that every change raises is read several times a second, on the connection
 * that listens. Without a recent read the cache is not used.
 */
export class RightsWatch {
  private readonly log = new Logger(RightsWatch.name);
  private readonly notifications: Notifications;
  private timer: NodeJS.Timeout | undefined;
  private isChecking = false;
  private isFailing = false;
  private version: number | undefined;
  /** Holds when the last successful check started, by `performance.now()`. */
  private checkedAt = -Infinity;

  /** @param onChange drops everything that is cached; also called when nothing has changed */
  constructor(
    databaseUrl: string,
    private readonly onChange: () => void,
  ) {
    this.notifications = new Notifications(databaseUrl, IDENTITY_CHANNEL, onChange, onChange);
  }

  async start(): Promise<void> {
    await this.notifications.listen();
    await this.check();
    this.timer = setInterval(() => void this.check(), POLL_INTERVAL_MS).unref();
  }

  async stop(): Promise<void> {
    clearInterval(this.timer);
    await this.notifications.close();
  }

  /** Tells whether the cache can be trusted. False: query the database. */
  isCurrent(): boolean {
    return performance.now() - this.checkedAt < CURRENT_FOR_MS;
  }

  private async check(): Promise<void> {
    if (this.isChecking) return;
    this.isChecking = true;
    const startedAt = performance.now();
    try {
      const rows = await this.notifications.query<{ version: number }>(VERSION);
      const version = rows?.[0]?.version;
      if (version === undefined) return;
      if (version !== this.version) this.onChange();
      this.version = version;
      this.checkedAt = startedAt;
      this.isFailing = false;
    } catch (error) {
      // Requests query the database meanwhile. Logged once, not three times a second.
      if (!this.isFailing)
        this.log.warn(`changes of rights cannot be watched: ${getErrorMessage(error)}`);
      this.isFailing = true;
    } finally {
      this.isChecking = false;
    }
  }
}
