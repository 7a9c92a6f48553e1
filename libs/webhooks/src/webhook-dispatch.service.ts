import { Injectable } from '@nestjs/common';
import { DeliveryWorker } from './delivery-worker.service.js';
import { FanOut } from './fan-out.subscription.js';

/** Everything that sends webhooks, as one thing to start and stop. */
@Injectable()
export class WebhookDispatch {
  private readonly stopping = new AbortController();
  private running: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly fanOut: FanOut,
    private readonly worker: DeliveryWorker,
  ) {}

  start(): void {
    const { signal } = this.stopping;
    this.running = Promise.all([this.fanOut.run(signal), this.worker.run(signal)]);
  }

  /** @returns attempts still in flight after the time allowed */
  async stop(milliseconds: number): Promise<number> {
    this.stopping.abort();
    await this.running;
    return this.worker.finish(milliseconds);
  }
}
