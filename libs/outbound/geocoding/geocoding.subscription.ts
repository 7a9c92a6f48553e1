import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { Config } from '#configuration/config.js';
import { inTransaction } from '#platform/database/connection.js';
import { LOCKS } from '#platform/database/locks.js';
import { takeStep, type Step } from '#platform/event-store/port/subscription-position.js';
import type { StoredEvent } from '#platform/event-store/port/event-store.js';
import { Followers } from '#platform/event-store/log/followers.service.js';
import { location } from '#loyalty/locations/location.js';
import { GeocodingQueue } from './geocoding-queue.service.js';
import { GeocodingWorker } from './geocoding-worker.service.js';

export const GEOCODING = 'geocoding';
const STREAM = `${location.name}-`;

/**
 * Follows the log from its beginning and enqueues addresses. The process that does this also sends the requests: public
 * servers allow one thread per application.
 */
@Injectable()
export class GeocodingSubscription {
  constructor(
    private readonly followers: Followers,
    private readonly pool: Pool,
    private readonly queue: GeocodingQueue,
    private readonly worker: GeocodingWorker,
    private readonly config: Config,
  ) {}

  /** Runs until the signal aborts, whatever happens to the database. */
  async run(signal: AbortSignal): Promise<void> {
    if (this.config.geocoder === 'none') return;
    await this.followers.run(
      {
        name: GEOCODING,
        lock: LOCKS.geocoding,
        subscription: GEOCODING,
        batch: 500,
        gatherMs: 500,
        effect: 'addresses are not geocoded',
        advance: (step, events) => this.advance(step, events),
        runBeside: (leading) => this.worker.run(leading),
      },
      signal,
    );
  }

  private async advance(step: Step, events: StoredEvent[]): Promise<void> {
    const addressEvents = events.filter(needsCoordinates);
    if (addressEvents.length === 0) return takeStep(this.pool, step);
    const accountIdByLocation = new Map(
      addressEvents.map(({ stream, meta }) => [
        Number(stream.slice(STREAM.length)),
        meta.accountId,
      ]),
    );
    await inTransaction(this.pool, async (client) => {
      await takeStep(client, step);
      await this.queue.enqueue(
        client,
        [...accountIdByLocation].map(([id, accountId]) => ({ id, accountId })),
      );
    });
  }
}

function needsCoordinates({ stream, type, data }: StoredEvent): boolean {
  if (!stream.startsWith(STREAM)) return false;
  if (type === 'LocationUpdated') return 'address' in data;
  return type === 'LocationCreated' || type === 'LocationUnpinned';
}
