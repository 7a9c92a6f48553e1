import { CommandBus } from '@nestjs/cqrs';
import { Pool } from 'pg';
import { Registry } from 'prom-client';
import { Config } from '#configuration/config.js';
import { ProcessSession } from '#platform/database/process-session.js';
import { QueueMetrics } from '#platform/database/queue-metrics.js';
import { Followers } from '#platform/event-store/log/followers.service.js';
import { ReadModels } from '#platform/event-store/read-models/read-models.js';
import { Geocoder } from '#outbound/geocoding/geocoder.js';
import { createGeocoder } from '#outbound/geocoding/geocoding.module.js';
import { GeocodingCache } from '#outbound/geocoding/geocoding-cache.service.js';
import { GeocodingQueue } from '#outbound/geocoding/geocoding-queue.service.js';
import { GeocodingSubscription } from '#outbound/geocoding/geocoding.subscription.js';
import { GeocodingWorker } from '#outbound/geocoding/geocoding-worker.service.js';
import { startSession, type LocalService } from './service.js';

/** Runs a dispatcher's geocoding with the providers of a running api. */
export class GeocodingFollower {
  readonly queue: GeocodingQueue;
  readonly registry = new Registry();
  private readonly stopping = new AbortController();
  private readonly running: Promise<void>;

  constructor(service: LocalService, geocoder?: Geocoder) {
    const get = <T>(type: abstract new (...args: never[]) => T): T =>
      service.app.get<T>(type, { strict: false });
    const [pool, config] = [get(Pool), get(Config)];
    this.queue = new GeocodingQueue(pool, get(ProcessSession));
    startSession(service);
    const worker = new GeocodingWorker(
      this.queue,
      new GeocodingCache(pool),
      geocoder ?? createGeocoder(config, pool),
      get(ReadModels),
      get(CommandBus),
      pool,
      get(QueueMetrics),
      this.registry,
    );
    this.running = new GeocodingSubscription(get(Followers), pool, this.queue, worker, config).run(
      this.stopping.signal,
    );
  }

  async stop(): Promise<void> {
    this.stopping.abort();
    await this.running;
  }
}
