import { Global, Module } from '@nestjs/common';
import { ThrottlerModule } from '@nestjs/throttler';
import { PlatformConfig } from '#platform/kernel/platform-config.js';
import { HttpMetrics } from './http-metrics.js';
import { Idempotency } from './idempotency.js';
import { WINDOW_SECONDS } from './rate-limit.js';
import { RetirementRecord } from './retirement-record.js';
import { StatusController } from './status.controller.js';
import { LargeResponses } from './large-responses.js';
import { LocalCounts, type Counts } from './throttler-storage.js';

/**
 * Provides everything that each request passes. The request guard uses the throttler's storage. Global, because every
 * context has lists.
 */
@Global()
@Module({
  imports: [
    ThrottlerModule.forRootAsync({
      inject: [PlatformConfig],
      useFactory: async (config: PlatformConfig) => ({
        throttlers: [{ limit: config.rateLimitPerMinute, ttl: WINDOW_SECONDS * 1000 }],
        storage: await openCounts(config),
      }),
    }),
  ],
  controllers: [StatusController],
  providers: [HttpMetrics, Idempotency, LargeResponses, RetirementRecord],
  exports: [HttpMetrics, LargeResponses],
})
export class HttpModule {}

/** Counts in Redis if the settings name one, whose client is loaded only then; otherwise in this process. */
async function openCounts({ redisUrl }: PlatformConfig): Promise<Counts> {
  if (redisUrl === null) return new LocalCounts();
  const { SharedCounts } = await import('./shared-counts.js');
  const shared = new SharedCounts(redisUrl);
  await shared.open();
  return shared;
}
