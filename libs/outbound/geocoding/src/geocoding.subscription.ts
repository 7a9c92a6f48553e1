import { Injectable, Logger } from '@nestjs/common';
import { Pool } from 'pg';
import { Config } from '#configuration/config.js';
import { inTransaction } from '#database/connection.js';
import { LeaderLock } from '#database/leader-lock.js';
import {
  readCheckpoint,
  MOVE_CHECKPOINT,
  toMoveArguments,
  OvertakenError,
} from '#event-store/port/checkpoint.js';
import { EventStore, type Position, type StoredEvent } from '#event-store/port/event-store.js';
import { EventTypes } from '#event-store/port/event-types.js';
import { followLog } from '#event-store/log/follow-log.js';
import { ReadModels } from '#event-store/read-models/read-models.js';
import { locationReadModel } from '#locations/location.entity.js';
import { GeocodingQueue } from './geocoding-queue.service.js';
import { GeocodingWorker } from './geocoding-worker.service.js';

export const GEOCODING = 'geocoding';
const LEADERSHIP = { name: GEOCODING, lock: 727_008 };
const BATCH_SIZE = 500;
const GATHER_MS = 500;
const STREAM = `${locationReadModel.aggregate.name}-`;

/**
 * Follows the log from its beginning and enqueues addresses. One process does this at a time, and the same one sends
 * the requests: public servers allow one thread per application.
 */
@Injectable()
export class GeocodingSubscription {
  private readonly log = new Logger(GEOCODING);

  constructor(
    private readonly pool: Pool,
    private readonly eventStore: EventStore,
    private readonly types: EventTypes,
    private readonly readModels: ReadModels,
    private readonly queue: GeocodingQueue,
    private readonly worker: GeocodingWorker,
    private readonly lock: LeaderLock,
    private readonly config: Config,
  ) {}

  /** Runs until the signal aborts, whatever happens to the database. */
  async run(signal: AbortSignal): Promise<void> {
    if (this.config.geocoder === 'none') return;
    await this.lock.lead(LEADERSHIP, signal, async (leading) => {
      const stopped = new AbortController();
      const untilStopped = AbortSignal.any([leading, stopped.signal]);
      await Promise.all([
        this.follow(untilStopped).finally(() => stopped.abort()),
        this.worker.run(untilStopped),
      ]);
    });
  }

  private async follow(signal: AbortSignal): Promise<void> {
    const follower = {
      batch: BATCH_SIZE,
      gatherMs: GATHER_MS,
      readPosition: () => readCheckpoint(this.pool, GEOCODING),
      advance: async (from: Position, events: StoredEvent[], to: Position) => {
        this.types.assertKnown(events, 'addresses are not geocoded');
        await this.advance(from, events, to);
      },
    };
    await followLog(this.eventStore, follower, this.log, signal);
  }

  private async advance(from: Position, events: StoredEvent[], to: Position): Promise<void> {
    const addressEvents = events.filter(needsCoordinates);
    const moveQuery = {
      name: 'geocoding_move',
      text: MOVE_CHECKPOINT,
      values: toMoveArguments(GEOCODING, from, to),
    };
    if (addressEvents.length === 0) {
      if ((await this.pool.query(moveQuery)).rowCount !== 1) throw new OvertakenError();
      return;
    }
    const accountIdByLocation = new Map(
      addressEvents.map(({ stream, meta }) => [
        Number(stream.slice(STREAM.length)),
        meta.accountId,
      ]),
    );
    // Read models may lag behind the log. An address that is read too early would be the former one.
    await this.readModels.waitUntilCaughtUp(locationReadModel, addressEvents);
    await inTransaction(this.pool, async (client) => {
      const moveResult = await client.query(moveQuery);
      if (moveResult.rowCount !== 1) throw new OvertakenError();
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
