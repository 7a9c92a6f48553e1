import { Injectable, Logger } from '@nestjs/common';
import { setTimeout as wait } from 'node:timers/promises';
import { messageOf } from '#kernel/errors.js';
import { isDatabaseAway } from '#database/connection.js';
import { DeliveryQueue, type Claimed } from './delivery-queue.service.js';
import { WebhookClient, type Attempted } from './webhook.client.js';

const CONCURRENCY = 64;
const POLL_MS = 500;
const DATABASE_AWAY_MS = 1_000;
const RECORD_TRIES = 3;

/** Keeps up to 64 attempts in flight, and looks for work when woken, when something is due, or now and then. */
@Injectable()
export class DeliveryWorker {
  private readonly log = new Logger('webhook deliveries');
  private readonly inFlight = new Map<number, Promise<void>>();
  private woken = false;
  private wakeUp: () => void = () => undefined;

  constructor(
    private readonly queue: DeliveryQueue,
    private readonly client: WebhookClient,
  ) {}

  /** There may be something to claim. */
  wake(): void {
    this.woken = true;
    this.wakeUp();
  }

  /** Until the signal aborts; what is in flight then is `finish`'s. */
  async run(signal: AbortSignal): Promise<void> {
    signal.addEventListener('abort', () => this.wake(), { once: true });
    for (let away = false; !signal.aborted;) {
      this.woken = false;
      try {
        const claimed = await this.claim();
        away = false;
        for (const delivery of claimed) this.start(delivery);
        if (claimed.length === 0) await this.idle();
      } catch (error) {
        if (!away) this.log.warn(`deliveries cannot be claimed: ${messageOf(error)}`);
        away = true;
        await this.untilWoken(DATABASE_AWAY_MS);
      }
    }
  }

  /** Waits for what is in flight. @returns how much of it was left behind, to be sent again later */
  async finish(milliseconds: number): Promise<number> {
    const timer = new AbortController();
    const late = wait(milliseconds, undefined, { signal: timer.signal }).catch((error: unknown) => {
      if (!timer.signal.aborted) throw error;
    });
    await Promise.race([Promise.all(this.inFlight.values()), late]);
    timer.abort();
    return this.inFlight.size;
  }

  private async claim(): Promise<Claimed[]> {
    const free = CONCURRENCY - this.inFlight.size;
    return free > 0 ? this.queue.claim(free, [...this.inFlight.keys()]) : [];
  }

  private start(delivery: Claimed): void {
    const work = this.deliver(delivery)
      .catch((error: unknown) => {
        // Its lease ends by itself, and then it is sent again under the same id.
        this.log.error(`delivery ${delivery.id} could not be recorded: ${messageOf(error)}`);
      })
      .finally(() => {
        this.inFlight.delete(delivery.id);
        this.wake();
      });
    this.inFlight.set(delivery.id, work);
  }

  private async deliver(claimed: Claimed): Promise<void> {
    const attempted: Attempted = claimed.attempt
      ? await this.client.send(claimed.attempt)
      : { outcome: { kind: 'erased' }, at: new Date(), durationMs: 0, excerpt: null };
    for (let refusals = 0; ;) {
      try {
        await this.queue.record(claimed, attempted);
        return;
      } catch (error) {
        if (!isDatabaseAway(error) && ++refusals === RECORD_TRIES) throw error;
        await wait(DATABASE_AWAY_MS);
      }
    }
  }

  private async idle(): Promise<void> {
    const due =
      this.inFlight.size < CONCURRENCY ? await this.queue.millisecondsToNext() : undefined;
    await this.untilWoken(Math.min(POLL_MS, Math.max(1, Math.ceil(due ?? POLL_MS))));
  }

  private async untilWoken(milliseconds: number): Promise<void> {
    if (this.woken) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, milliseconds);
      this.wakeUp = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}
