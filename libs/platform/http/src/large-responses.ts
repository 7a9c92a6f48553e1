import { Injectable } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import { UnavailableError } from '#kernel/errors.js';
import type { AuthenticatedRequest } from './caller.js';

const MAX_RUNNING = { total: 4, perAccount: 2 };
/** Maximum number of waiting responses; each holds the rows it has read so far. */
const MAX_WAITING = { total: 48, perAccount: 16 };
const WAIT_TIMEOUT_MS = 20_000;
/** Time in which a caller must read the response; slower ones would block others. */
const SEND_TIMEOUT_MS = 60_000;

type Waiter = { account: string; start: () => void };

/**
 * Limits how many large responses are built at once: each holds megabytes from its first row until its last byte is
 * sent. The others wait, and no account can use all places.
 */
@Injectable()
export class LargeResponses {
  private readonly started = new WeakSet<FastifyReply>();
  private readonly runningByAccount = new Map<string, number>();
  private waiting: Waiter[] = [];
  private runningCount = 0;

  /**
   * Waits until this response may grow large. Call it before each of its larger steps. Its place is released when it
   * has been sent.
   * @throws UnavailableError when its turn does not come in time, or when the caller has disconnected
   */
  async acquire({ accountId, caller }: AuthenticatedRequest, reply: FastifyReply): Promise<void> {
    // Its place is released already, and nobody would read the response.
    if (reply.raw.closed) throw new UnavailableError('The client has disconnected');
    if (this.started.has(reply)) return;
    const account = accountId === undefined ? `token ${caller?.tokenId}` : `account ${accountId}`;
    const accountCount = this.waiting.filter((one) => one.account === account).length;
    if (this.waiting.length >= MAX_WAITING.total || accountCount >= MAX_WAITING.perAccount)
      throw createOverloadError();
    await this.wait(account, reply);
    this.started.add(reply);
  }

  private wait(account: string, reply: FastifyReply): Promise<void> {
    return new Promise((resolve, reject) => {
      const giveUp = (error: Error) => {
        clearTimeout(timer);
        this.waiting = this.waiting.filter((one) => one !== waiting);
        reject(error);
      };
      const onClose = () => giveUp(new UnavailableError('The client has disconnected'));
      const waiting = {
        account,
        start: () => {
          clearTimeout(timer);
          reply.raw.off('close', onClose);
          this.occupy(account, reply);
          resolve();
        },
      };
      const timer = setTimeout(() => giveUp(createOverloadError()), WAIT_TIMEOUT_MS);
      reply.raw.once('close', onClose);
      this.waiting.push(waiting);
      this.startNext();
    });
  }

  private occupy(account: string, reply: FastifyReply): void {
    this.count(account, 1);
    const tooSlow = setTimeout(() => reply.raw.destroy(), SEND_TIMEOUT_MS);
    reply.raw.once('close', () => {
      clearTimeout(tooSlow);
      this.count(account, -1);
      this.startNext();
    });
  }

  private startNext(): void {
    for (let takeNext = this.next(); takeNext; takeNext = this.next()) takeNext.start();
  }

  private next(): Waiter | undefined {
    if (this.runningCount >= MAX_RUNNING.total) return undefined;
    const i = this.waiting.findIndex(
      ({ account }) => (this.runningByAccount.get(account) ?? 0) < MAX_RUNNING.perAccount,
    );
    return i < 0 ? undefined : this.waiting.splice(i, 1)[0];
  }

  private count(account: string, by: 1 | -1): void {
    const running = (this.runningByAccount.get(account) ?? 0) + by;
    if (running === 0) this.runningByAccount.delete(account);
    else this.runningByAccount.set(account, running);
    this.runningCount += by;
  }
}

function createOverloadError(): UnavailableError {
  return new UnavailableError('Too many large responses are in progress');
}
