import { Injectable } from '@nestjs/common';
import { Counter, Histogram, Registry } from 'prom-client';
import { UnavailableError, UnknownOutcomeError } from '#platform/kernel/errors.js';
import { ClaimTakenError, ConflictError, KeyTakenOverError } from '../port/event-store.js';

const BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

@Injectable()
export class PipelineMetrics {
  /** How long commands wait in their lane, in seconds. */
  readonly waits: Histogram;
  /** How long commits take, in seconds, by result. */
  readonly seconds: Histogram<'result'>;
  readonly events: Counter;

  constructor(registry: Registry) {
    this.waits = new Histogram({
      name: 'inkpad_command_wait_seconds',
      help: 'Time a command waits in the lane of its stream; again after each lost race',
      buckets: BUCKETS,
      registers: [registry],
    });
    this.seconds = new Histogram({
      name: 'inkpad_commit_seconds',
      help: 'Duration of commits by result; conflict: another process was first, and the commands are retried',
      labelNames: ['result'],
      buckets: BUCKETS,
      registers: [registry],
    });
    this.events = new Counter({
      name: 'inkpad_events_committed_total',
      help: 'Events in commits that succeeded',
      registers: [registry],
    });
  }
}

/** Returns the label of a commit that failed. */
export function getResultLabel(error: unknown): string {
  if (error instanceof ConflictError) return 'conflict';
  if (error instanceof ClaimTakenError) return 'taken';
  if (error instanceof KeyTakenOverError) return 'taken_over';
  if (error instanceof UnavailableError) return 'unavailable';
  return error instanceof UnknownOutcomeError ? 'unknown' : 'failed';
}
