import { Inject, Injectable, Logger } from '@nestjs/common';
import { getErrorMessage } from '#platform/kernel/errors.js';
import { isTransient } from '#platform/database/connection.js';
import type { JobOutcome } from '#platform/database/job-queue.js';
import { JobRunner } from '#platform/database/job-runner.js';
import { QueueMetrics } from '#platform/database/queue-metrics.js';
import { PASS_SENDERS, type PassSender, type PassUpdate } from './pass-sender.js';
import { PassUpdates } from './pass-updates.service.js';

/** Sends the updates of passes. */
@Injectable()
export class PassDispatch {
  private readonly log = new Logger('pass updates');
  private readonly runner = new JobRunner(this.log);

  constructor(
    private readonly updates: PassUpdates,
    @Inject(PASS_SENDERS) private readonly senders: PassSender[],
    private readonly metrics: QueueMetrics,
  ) {}

  start(): void {
    for (const sender of this.senders.filter(({ enabled }) => enabled)) {
      this.runner.start(
        this.metrics.watch(`passes_${sender.channel}`, {
          queue: this.updates,
          concurrency: sender.concurrency,
          claim: (limit) => this.updates.claimByPriority(sender.channel, limit),
          describeFailure: ({ channel, target }) => `the update of ${channel} ${target} failed`,
          attempt: (update, ...rest) => this.attempt(sender, update, ...rest),
        }),
      );
    }
  }

  stop(milliseconds: number): Promise<void> {
    return this.runner.stop(milliseconds);
  }

  private async attempt(
    sender: PassSender,
    update: PassUpdate,
    cut: AbortSignal,
    isLeased: () => boolean,
  ): Promise<JobOutcome> {
    try {
      return await sender.send(update, cut, isLeased);
    } catch (error) {
      if (isTransient(error)) throw error;
      const message = getErrorMessage(error);
      this.log.error(message, error instanceof Error ? error.stack : undefined);
      return { kind: 'failed', error: message };
    }
  }
}
