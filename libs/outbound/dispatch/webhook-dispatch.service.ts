import { Injectable } from '@nestjs/common';
import { StallDetector } from '#platform/kernel/stall-detector.js';
import { DeliveryWorker } from './delivery-worker.service.js';
import { FanOut } from './fan-out.subscription.js';

/** Everything that sends webhooks, as one thing to start and stop. */
@Injectable()
export class WebhookDispatch {
  private readonly stopping = new AbortController();
  private running: Promise<unknown> = Promise.resolve();
  private isLooping = false;
  private hasEnded = false;

  constructor(
    private readonly fanOut: FanOut,
    private readonly worker: DeliveryWorker,
    private readonly stalls: StallDetector,
  ) {}

  /** False before the start, after the stop, and whenever a loop has ended by itself or hangs. */
  get isRunning(): boolean {
    return this.isLooping && !this.stopping.signal.aborted && !this.stalls.isStuck;
  }

  /** False when only a restart of the process can help. */
  get isAlive(): boolean {
    return !this.hasEnded && !this.stalls.isStuck;
  }

  start(): void {
    const { signal } = this.stopping;
    this.isLooping = true;
    const loops = [this.fanOut.run(signal), this.worker.run(signal)];
    this.running = Promise.all(loops.map((loop) => loop.finally(() => this.endLoop())));
  }

  private endLoop(): void {
    this.isLooping = false;
    this.hasEnded ||= !this.stopping.signal.aborted;
  }

  /** @returns attempts still in flight after the time allowed */
  async stop(milliseconds: number): Promise<number> {
    this.stopping.abort();
    await this.running;
    return this.worker.finish(milliseconds);
  }
}
