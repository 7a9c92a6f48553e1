import { Injectable } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import { UnavailableError } from '#platform/kernel/errors.js';
import { getOwnerKey } from '#platform/database/database-waits.js';
import { FairQueue } from '#platform/kernel/fair-queue.js';
import type { AuthenticatedRequest } from './caller.js';

/** Four at a time, and two of each account. Each that waits holds the rows it has read so far. */
const SLOTS = { concurrency: 4, getMaxRunning: () => 2, maxWaiting: 16, waitMs: 20_000 };
/** Maximum number of waiting responses of all accounts. */
const MAX_WAITING = 48;
/** Time in which a caller must read the response; slower ones would block others. */
const SEND_TIMEOUT_MS = 60_000;

/**
 * Limits how many large responses are built at once: each holds megabytes from its first row until its last byte is
 * sent. The others wait, and no account can use all places.
 */
@Injectable()
export class LargeResponses {
  private readonly started = new WeakSet<FastifyReply>();
  private readonly slots = new FairQueue(SLOTS);

  /**
   * Waits until this response may grow large. Call it before each of its larger steps. Its place is released when it
   * has been sent.
   * @throws UnavailableError when no slot is free in time, or when the caller has disconnected
   */
  async acquire({ accountId, caller }: AuthenticatedRequest, reply: FastifyReply): Promise<void> {
    // Its place is released already, and nobody would read the response.
    if (reply.raw.closed) throw createDisconnectedError();
    if (this.started.has(reply)) return;
    if (this.slots.waitingCount >= MAX_WAITING) throw createOverloadError();
    const owner = getOwnerKey(accountId ?? `token ${caller?.tokenId}`);
    await new Promise<void>((resolve, reject) => {
      const giveUp = this.slots.acquire(owner, (error, release) => {
        if (error) return reject(createOverloadError());
        const tooSlow = setTimeout(() => reply.raw.destroy(), SEND_TIMEOUT_MS);
        reply.raw.once('close', () => {
          clearTimeout(tooSlow);
          release();
        });
        resolve();
      });
      reply.raw.once('close', () => {
        giveUp();
        reject(createDisconnectedError());
      });
    });
    this.started.add(reply);
  }
}

function createDisconnectedError(): UnavailableError {
  return new UnavailableError('The client has disconnected');
}

function createOverloadError(): UnavailableError {
  return new UnavailableError('Too many large responses are in progress');
}
