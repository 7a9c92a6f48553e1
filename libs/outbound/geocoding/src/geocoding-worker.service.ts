import { Injectable, Logger } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import { Pool } from 'pg';
import { Counter, Gauge, Registry } from 'prom-client';
import { messageOf, NotFoundError } from '#kernel/errors.js';
import { pause } from '#kernel/pause.js';
import { retrying } from '#event-store/follow-log.js';
import { Rows } from '#event-store/rows.js';
import { RecordGeocoding } from '#locations/location.commands.js';
import { locationRows } from '#locations/location.entity.js';
import type { Geocoding, Location } from '#locations/location.js';
import { Geocoder, type GeocoderAnswer } from './geocoder.js';
import { GeocodingCache } from './geocoding-cache.service.js';
import { GeocodingQueue, type QueuedAddress } from './geocoding-queue.service.js';
import { nextGeocodingInMs } from './geocoding-retry.js';

const IDLE_MS = 1_000;
const BUSY_MS = 5_000;
const FORGET_EVERY_MS = 3600_000;

const OLDEST_DUE = {
  name: 'geocoding_oldest_due',
  text: `select extract(epoch from now() - min(due_at))::float8 as seconds
         from geocoding_queue where due_at <= now()`,
};

/** Looks up the queued addresses, one after another, the stores in turn. */
@Injectable()
export class GeocodingWorker {
  private readonly log = new Logger('geocoding');
  private readonly answers: Counter<'provider' | 'result'>;
  private sleeping = new AbortController();
  private forgottenAt = -Infinity;

  constructor(
    private readonly queue: GeocodingQueue,
    private readonly cache: GeocodingCache,
    private readonly geocoder: Geocoder,
    private readonly rows: Rows,
    private readonly commands: CommandBus,
    private readonly pool: Pool,
    registry: Registry,
  ) {
    this.answers = new Counter({
      name: 'inkpad_geocoding_answers_total',
      help: 'Addresses that were looked up, by geocoder and result (found, not_found, failed)',
      labelNames: ['provider', 'result'],
      registers: [registry],
    });
    const oldest = new Gauge({
      name: 'inkpad_geocoding_oldest_due_seconds',
      help: 'How long an address has been due without being looked up',
      registers: [],
    });
    const collect = () => this.measure(oldest);
    registry.registerMetric(Object.assign(oldest, { collect }));
  }

  /** When it fails, the value stays as it was. */
  private async measure(oldest: Gauge): Promise<void> {
    try {
      const { rows } = await this.pool.query<{ seconds: number | null }>(OLDEST_DUE);
      oldest.set(rows[0]?.seconds ?? 0);
    } catch (error) {
      this.log.warn(`the queue could not be measured: ${messageOf(error)}`);
    }
  }

  /** There may be something to do. */
  wake(): void {
    this.sleeping.abort();
  }

  /** Runs until the signal aborts, whatever happens to the database. */
  async run(signal: AbortSignal): Promise<void> {
    let served = 0;
    await retrying(this.log, signal, async (succeeded) => {
      this.sleeping = new AbortController();
      await this.forget();
      const address = await this.queue.claim(served);
      if (address) {
        served = address.accountId;
        if (!(await this.attempt(address, signal))) await pause(BUSY_MS, signal);
      } else await pause(IDLE_MS, AbortSignal.any([signal, this.sleeping.signal]));
      succeeded();
    });
  }

  /** @returns whether the geocoder could be asked */
  private async attempt(address: QueuedAddress, signal: AbortSignal): Promise<boolean> {
    const state = (await this.rows.load(locationRows, address.locationId))?.state;
    if (!state || !isWanted(state, address)) {
      await this.queue.finish(address);
      return true;
    }
    const answer = await this.geocoder.find(state.address, signal);
    if (answer.kind === 'busy') {
      await this.queue.release(address);
      return false;
    }
    this.answers.inc({ provider: this.geocoder.name, result: answer.kind });
    if (answer.kind === 'failed') {
      const inMs = nextGeocodingInMs(address.attempts, answer.retryInMs);
      const what = `location ${address.locationId}: ${this.geocoder.name} ${answer.error}`;
      if (inMs !== undefined) {
        this.log.warn(`${what}; next attempt in ${Math.round(inMs / 1000)} s`);
        await this.queue.putOff(address, inMs, answer.error);
        return true;
      }
      this.log.error(`${what}; it is not tried again`);
    }
    await this.record(state, resultOf(answer));
    await this.queue.finish(address);
    return true;
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
      // Nobody waits for it any more.
      if (!(error instanceof NotFoundError)) throw error;
    }
  }

  private async forget(): Promise<void> {
    if (performance.now() - this.forgottenAt < FORGET_EVERY_MS) return;
    if (!(await this.cache.forgetOld())) this.forgottenAt = performance.now();
  }
}

/** Whatever has been settled since it was queued needs no geocoder. */
function isWanted(state: Location, { again }: QueuedAddress): boolean {
  if (state.deletedAt !== null || state.precision === 'manual') return false;
  return again || state.geocodeStatus === 'pending';
}

function resultOf(answer: Exclude<GeocoderAnswer, { kind: 'busy' }>): Geocoding {
  if (answer.kind !== 'found') return { status: answer.kind };
  const { latitude, longitude, precision } = answer;
  return { status: 'ok', latitude, longitude, precision };
}
