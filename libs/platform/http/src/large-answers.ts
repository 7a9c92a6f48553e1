import { Injectable } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import { UnavailableError } from '#kernel/errors.js';
import type { GatedRequest } from './caller.js';

const AT_ONCE = { all: 4, ofAccount: 2 };
/** How many answers may wait; each holds what it has found so far. */
const WAITING = { all: 48, ofAccount: 16 };
const TURN_WITHIN_MS = 20_000;
/** A caller who reads more slowly than this keeps the place from others. */
const TAKEN_WITHIN_MS = 60_000;

type Waiting = { account: string; begin: () => void };

/**
 * Lets only a few large answers be made at once, because each holds megabytes from its first row until the caller has
 * received the last byte. The others wait their turn, and no account gets all places.
 */
@Injectable()
export class LargeAnswers {
  private readonly begun = new WeakSet<FastifyReply>();
  private readonly held = new Map<string, number>();
  private waiting: Waiting[] = [];
  private total = 0;

  /**
   * Waits until this answer may grow large. Call it before each of its larger steps. Its place is free again when it
   * has been sent.
   * @throws UnavailableError when its turn does not come in time, or when the caller has hung up
   */
  async turn({ accountId, caller }: GatedRequest, reply: FastifyReply): Promise<void> {
    // Its place is free already, and nobody would read the answer.
    if (reply.raw.closed) throw new UnavailableError('The caller has hung up');
    if (this.begun.has(reply)) return;
    const account = accountId === undefined ? `token ${caller?.tokenId}` : `account ${accountId}`;
    const ofAccount = this.waiting.filter((one) => one.account === account).length;
    if (this.waiting.length >= WAITING.all || ofAccount >= WAITING.ofAccount) throw tooMany();
    await this.wait(account, reply);
    this.begun.add(reply);
  }

  private wait(account: string, reply: FastifyReply): Promise<void> {
    return new Promise((resolve, reject) => {
      const giveUp = (error: Error) => {
        clearTimeout(timer);
        this.waiting = this.waiting.filter((one) => one !== waiting);
        reject(error);
      };
      const hungUp = () => giveUp(new UnavailableError('The caller has hung up'));
      const waiting = {
        account,
        begin: () => {
          clearTimeout(timer);
          reply.raw.off('close', hungUp);
          this.hold(account, reply);
          resolve();
        },
      };
      const timer = setTimeout(() => giveUp(tooMany()), TURN_WITHIN_MS);
      reply.raw.once('close', hungUp);
      this.waiting.push(waiting);
      this.beginNext();
    });
  }

  private hold(account: string, reply: FastifyReply): void {
    this.count(account, 1);
    const tooSlow = setTimeout(() => reply.raw.destroy(), TAKEN_WITHIN_MS);
    reply.raw.once('close', () => {
      clearTimeout(tooSlow);
      this.count(account, -1);
      this.beginNext();
    });
  }

  private beginNext(): void {
    for (let next = this.next(); next; next = this.next()) next.begin();
  }

  private next(): Waiting | undefined {
    if (this.total >= AT_ONCE.all) return undefined;
    const i = this.waiting.findIndex(
      ({ account }) => (this.held.get(account) ?? 0) < AT_ONCE.ofAccount,
    );
    return i < 0 ? undefined : this.waiting.splice(i, 1)[0];
  }

  private count(account: string, by: 1 | -1): void {
    const held = (this.held.get(account) ?? 0) + by;
    if (held === 0) this.held.delete(account);
    else this.held.set(account, held);
    this.total += by;
  }
}

function tooMany(): UnavailableError {
  return new UnavailableError('Too many large answers are under way');
}
