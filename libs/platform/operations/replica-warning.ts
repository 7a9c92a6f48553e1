import { Injectable, Logger } from '@nestjs/common';
import { PlatformConfig } from '#platform/kernel/platform-config.js';
import { ProcessSession } from '#platform/database/process-session.js';

/** Warns once when several apis each count limits for themselves because REDIS_URL is not set. */
@Injectable()
export class ReplicaWarning {
  private readonly log = new Logger('limits');
  private warnedCount = 1;

  constructor(session: ProcessSession, { redisUrl }: PlatformConfig) {
    if (redisUrl === null) session.onPeers((peerCount) => this.warn(peerCount + 1));
  }

  private warn(apiCount: number): void {
    // After an outage the same apis come back one after another.
    if (apiCount <= this.warnedCount) return;
    this.warnedCount = apiCount;
    this.log.warn(
      `${apiCount} apis run on this database without REDIS_URL: each counts rate limits for itself, so callers get up to ${apiCount} times their limit. Set REDIS_URL to the same Redis in all of them.`,
    );
  }
}
