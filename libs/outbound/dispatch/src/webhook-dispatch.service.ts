import { Injectable } from '@nestjs/common';
import { StallDetector } from '#kernel/stall-detector.js';
import { DeliveryWorker } from './delivery-worker.service.js';
import { FanOut } from './fan-out.subscription.js';

/** Everything that sends webhooks, as one thing to start and stop. */
@Injectable()
export class WebhookDispatch {
  private readonly stopping = new AbortController();
  private running: Promise<unknown> = Promise.resolve();
  private looping = false;
  private ended = false;

  constructor(
    private readonly fanOut: FanOut,
    private readonly worker: DeliveryWorker,
    private readonly stalls: StallDetector,
  ) {}

  /** False before the start, after the stop, and whenever a loop has ended by itself or hangs. */
  get runs(): boolean {
    return this.looping && !this.stopping.signal.aborted && !this.stalls.isStuck;
  }

  /** False when only a restart of the process can help. */
  get isAlive(): boolean {
    return !this.ended && !this.stalls.isStuck;
  }

  start(): void {
    const { signal } = this.stopping;
    this.looping = true;
    const loops = [this.fanOut.run(signal), this.worker.run(signal)];
    this.running = Promise.all(loops.map((loop) => loop.finally(() => this.over())));
  }

  private over(): void {
    this.looping = false;
    this.ended ||= !this.stopping.signal.aborted;
  }

  /** @returns attempts still in flight after the time allowed */
  async stop(milliseconds: number): Promise<number> {
    this.stopping.abort();
    await this.running;
    return this.worker.finish(milliseconds);
  }
}
