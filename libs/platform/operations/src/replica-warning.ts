import {
  Injectable,
  Logger,
  type OnApplicationBootstrap,
  type OnModuleDestroy,
} from '@nestjs/common';
import { Pool } from 'pg';
import { PlatformConfig } from '#kernel/platform-config.js';
import { getErrorMessage } from '#kernel/errors.js';

/** Shorter than the life of an idle connection, so that an idle api is counted too. */
const CHECK_INTERVAL_MS = 10_000;

/** Counts apis: each names its connections `inkpad api` and its own suffix. */
const COUNT_APIS = `select count(distinct application_name) as apis from pg_stat_activity
  where datname = current_database() and application_name like 'inkpad api %'`;

/** Warns when several apis each count limits for themselves because REDIS_URL is not set. */
@Injectable()
export class ReplicaWarning implements OnApplicationBootstrap, OnModuleDestroy {
  private readonly log = new Logger('limits');
  private timer: NodeJS.Timeout | undefined;
  private lastCount = 1;

  constructor(
    private readonly pool: Pool,
    private readonly config: PlatformConfig,
  ) {}

  async onApplicationBootstrap(): Promise<void> {
    if (this.config.redisUrl !== null) return;
    this.timer = setInterval(() => void this.check(), CHECK_INTERVAL_MS).unref();
    await this.check();
  }

  onModuleDestroy(): void {
    clearInterval(this.timer);
  }

  private async check(): Promise<void> {
    try {
      const { rows } = await this.pool.query<{ apis: number }>(COUNT_APIS);
      const apis = rows[0]?.apis ?? 1;
      if (apis > 1 && apis !== this.lastCount) {
        this.log.warn(
          `${apis} apis run on this database without REDIS_URL: each counts rate limits for itself, so callers get up to ${apis} times their limit. Set REDIS_URL to the same Redis in all of them.`,
        );
      }
      this.lastCount = apis;
    } catch (error) {
      this.log.debug(`other apis cannot be counted: ${getErrorMessage(error)}`);
    }
  }
}
