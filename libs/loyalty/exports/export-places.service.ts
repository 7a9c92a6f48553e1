import { Injectable } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import { getOwnerKey } from '#platform/database/database-waits.js';
import { FairQueue } from '#platform/kernel/fair-queue.js';
import { UnavailableError } from '#platform/kernel/errors.js';
import { createOverdueCheck } from './overdue-check.js';

/** Maximum numbers of exports at a time. One holds a page in memory, and no connection while its client reads. */
const EXPORTS = { concurrency: 32, getMaxRunning: () => 2, maxWaiting: 0, waitMs: 0 };
/** Pages that are read at a time, of all exports together: they share the database with everything else. */
const READING = { concurrency: 2, maxWaiting: EXPORTS.getMaxRunning(), waitMs: 60_000 };
const CHECK_INTERVAL_MS = 1_000;

/** Limits how many exports run at once, so that those of one store slow neither other stores nor the other requests. */
@Injectable()
export class ExportPlaces {
  private readonly running = new FairQueue(EXPORTS);
  private readonly reading = new FairQueue(READING);

  /**
   * Takes a place until the response is closed. Closes it when its client stalls.
   * @throws UnavailableError when the store, or all stores together, have as many exports as there may be
   */
  take(accountId: number, reply: FastifyReply): void {
    if (reply.raw.closed) throw new UnavailableError('The client has disconnected');
    this.running.acquire(getOwnerKey(accountId), (error, release) => {
      if (error) throw new UnavailableError('Too many exports are in progress');
      const timer = this.watch(reply);
      reply.raw.once('close', () => {
        clearInterval(timer);
        release();
      });
    });
  }

  /** Reads a page in a slot of the store. */
  read<R>(accountId: number, work: () => Promise<R>): Promise<R> {
    return this.reading.run(getOwnerKey(accountId), work);
  }

  private watch({ raw }: FastifyReply): NodeJS.Timeout {
    const isOverdue = createOverdueCheck(performance.now());
    const timer = setInterval(() => {
      const sent = raw.socket?.bytesWritten ?? 0;
      const now = performance.now();
      if (isOverdue({ now, sent, isWaiting: raw.writableLength > 0 })) raw.destroy();
    }, CHECK_INTERVAL_MS);
    return timer.unref();
  }
}
