import { Injectable, Logger } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import { Pool } from 'pg';
import { Counter, type Gauge, Registry } from 'prom-client';
import { DamagedHistoryError, NotFoundError } from '#platform/kernel/errors.js';
import { addGauge, shareReads } from '#platform/kernel/gauges.js';
import { pause } from '#platform/kernel/pause.js';
import { getRetryDelayMs } from '#platform/kernel/retry-schedule.js';
import type { Job, JobOutcome } from '#platform/database/job-queue.js';
import { runJobs, type JobHandler } from '#platform/database/job-runner.js';
import { QueueMetrics } from '#platform/database/queue-metrics.js';
import { ReadModels } from '#platform/event-store/read-models/read-models.js';
import { RecordGeocoding } from '#loyalty/locations/location.commands.js';
import { location, type Geocoding, type Location } from '#loyalty/locations/location.js';
import { Geocoder, type GeocoderResponse } from './geocoder.js';
import { GeocodingCache } from './geocoding-cache.service.js';
import { GeocodingQueue, type QueuedAddress } from './geocoding-queue.service.js';

const BUSY_RETRY_MS = 5_000;
const CACHE_CLEANUP_INTERVAL_MS = 3600_000;

const OLDEST_DUE = {
  name: 'geocoding_oldest_due',
  text: `select extract(epoch from now() - min(due_at))::float8 as seconds
         from geocoding_queue where due_at <= now()`,
};

/** Looks up the queued addresses, one at a time, round robin over the stores. */
@Injectable()
export class GeocodingWorker {
  private readonly log = new Logger('geocoding');
  private readonly responseCounter: Counter<'provider' | 'result'>;
  private cleanedUpAt = -Infinity;

  constructor(
    private readonly queue: GeocodingQueue,
    private readonly cache: GeocodingCache,
    private readonly geocoder: Geocoder,
    private readonly readModels: ReadModels,
    private readonly commands: CommandBus,
    pool: Pool,
    private readonly metrics: QueueMetrics,
    registry: Registry,
  ) {
    this.responseCounter = new Counter({
      name: 'inkpad_geocoding_lookups_total',
      help: 'Addresses that were looked up, by geocoder and result (found, not_found, failed)',
      labelNames: ['provider', 'result'],
      registers: [registry],
    });
    addGauge(
      registry,
      {
        name: 'inkpad_geocoding_oldest_due_seconds',
        help: 'Seconds that the oldest due address has been waiting to be looked up',
      },
      shareReads(this.log, 'the addresses that wait', 0, async (gauge: Gauge) => {
        const { rows } = await pool.query<{ seconds: number | null }>(OLDEST_DUE);
        gauge.set(rows[0]?.seconds ?? 0);
      }),
    );
  }

  /** Runs until the signal aborts, whatever happens to the database. */
  async run(signal: AbortSignal): Promise<void> {
    const handler: JobHandler<QueuedAddress> = {
      queue: this.queue,
      concurrency: 1,
      claim: async (limit) => {
        await this.cleanUpCache();
        return this.queue.claim(limit);
      },
      describeFailure: ({ locationId }) => `the lookup of location ${locationId} failed`,
      attempt: (address, cut) => this.attempt(address, cut),
    };
    await runJobs(this.metrics.watch('geocoding', handler), this.log, signal, signal);
  }

  /** Looks up one address. */
  private async attempt(
    address: Job<QueuedAddress>,
    signal: AbortSignal,
  ): Promise<JobOutcome | void> {
    const state = (await this.readModels.load(location, address.locationId))?.state;
    if (!state || !needsGeocoding(state, address)) return { kind: 'done' };
    const response = await this.geocoder.find(state.address, signal);
    if (response.kind === 'busy') {
      await pause(BUSY_RETRY_MS, signal);
      return this.queue.release(address);
    }
    this.responseCounter.inc({ provider: this.geocoder.name, result: response.kind });
    const isRetried =
      response.kind === 'failed' &&
      getRetryDelayMs(this.queue.schedule, address.attempts) !== undefined;
    if (!isRetried) await this.record(state, toGeocoding(response));
    return response.kind === 'failed' ? response : { kind: 'done' };
  }

  private async record(state: Location, result: Geocoding): Promise<void> {
    const context = {
      accountId: state.accountId,
      actor: { type: 'system', id: 0 },
      channel: 'system',
      requestId: 'geocoding',
    } as const;
    const { id, address } = state;
    try {
      await this.commands.execute(
        new RecordGeocoding(context, id, address, result, this.geocoder.name),
      );
    } catch (error) {
      // The location was deleted meanwhile, or cannot be changed by anybody.
      if (!(error instanceof NotFoundError || error instanceof DamagedHistoryError)) throw error;
    }
  }

  private async cleanUpCache(): Promise<void> {
    if (performance.now() - this.cleanedUpAt < CACHE_CLEANUP_INTERVAL_MS) return;
    if (!(await this.cache.deleteExpired())) this.cleanedUpAt = performance.now();
  }
}

/** Tells whether the address still has to be looked up. It may have been pinned or deleted since it was enqueued. */
function needsGeocoding(state: Location, { isForced }: QueuedAddress): boolean {
  if (state.deletedAt !== null || state.precision === 'manual') return false;
  return isForced || state.geocodeStatus === 'pending';
}

function toGeocoding(response: Exclude<GeocoderResponse, { kind: 'busy' }>): Geocoding {
  if (response.kind !== 'found') return { status: response.kind };
  const { latitude, longitude, precision } = response;
  return { status: 'ok', latitude, longitude, precision };
}
