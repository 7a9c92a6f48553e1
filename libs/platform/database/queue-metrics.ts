import { Injectable } from '@nestjs/common';
import { Counter, Registry } from 'prom-client';
import { addGauge } from '#platform/kernel/gauges.js';
import type { JobHandler } from './job-runner.js';

/** Measures queues of jobs: whether this process still takes jobs from them, and how its attempts end. */
@Injectable()
export class QueueMetrics {
  private readonly claimedAt = new Map<string, number>();
  private readonly attempts: Counter<'queue' | 'outcome'>;

  constructor(registry: Registry) {
    this.attempts = new Counter({
      name: 'inkpad_queue_attempts_total',
      help: 'Attempts at jobs, by queue and outcome (done, failed, refused, unsent)',
      labelNames: ['queue', 'outcome'],
      registers: [registry],
    });
    addGauge(
      registry,
      {
        name: 'inkpad_queue_unclaimed_seconds',
        help: 'Time since this process last asked the queue for due jobs, which it does all the time',
        labelNames: ['queue'],
      },
      (gauge) => {
        const now = performance.now();
        for (const [queue, at] of this.claimedAt) gauge.set({ queue }, (now - at) / 1_000);
      },
    );
  }

  /** Measures the jobs that a handler claims and attempts. @param queue its name as a label */
  watch<Item extends object>(queue: string, handler: JobHandler<Item>): JobHandler<Item> {
    this.claimedAt.set(queue, performance.now());
    for (const outcome of ['done', 'failed', 'refused', 'unsent'])
      this.attempts.inc({ queue, outcome }, 0);
    return {
      ...handler,
      claim: async (limit) => {
        const jobs = await handler.claim(limit);
        this.claimedAt.set(queue, performance.now());
        return jobs;
      },
      attempt: async (job, ...rest) => {
        let outcome = 'failed';
        try {
          const result = await handler.attempt(job, ...rest);
          outcome = result?.kind ?? 'done';
          return result;
        } finally {
          this.attempts.inc({ queue, outcome });
        }
      },
    };
  }
}
