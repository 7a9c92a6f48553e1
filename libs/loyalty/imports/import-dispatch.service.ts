import { Injectable, Logger } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { getErrorMessage, InvalidFieldsError } from '#platform/kernel/errors.js';
import { isTransient } from '#platform/database/connection.js';
import type { Job, JobOutcome } from '#platform/database/job-queue.js';
import { JobRunner } from '#platform/database/job-runner.js';
import { Maintenance } from '#platform/database/maintenance.service.js';
import { QueueMetrics } from '#platform/database/queue-metrics.js';
import { ImportApplying } from './import-applying.service.js';
import { ImportChecking } from './import-checking.service.js';
import { ImportRecord, toImport } from './import.entity.js';
import { ImportQueue, type QueuedImport } from './import-queue.service.js';
import { ImportRetention } from './import-retention.service.js';
import { ImportUndoing } from './import-undoing.service.js';

/** Imports of different stores at once. */
const CONCURRENCY = 2;
/** Shorter than a lease. Then another store is served. */
const SLICE_MS = 10_000;
/** What the rows that have begun may take after the signal. What is killed then is found again in the history. */
const FINISH_WITHIN_MS = 12_000;
/** While maintenance mode is on, during which no import changes anything. */
const MAINTENANCE_WAIT_MS = 5_000;

/** Works on imports, round robin over the stores, for a slice of time each. */
@Injectable()
export class ImportDispatch {
  private readonly log = new Logger('imports');
  private readonly runner = new JobRunner(this.log);

  constructor(
    private readonly queue: ImportQueue,
    private readonly checking: ImportChecking,
    private readonly applying: ImportApplying,
    private readonly undoing: ImportUndoing,
    private readonly retention: ImportRetention,
    private readonly maintenance: Maintenance,
    @InjectRepository(ImportRecord) private readonly imports: Repository<ImportRecord>,
    private readonly metrics: QueueMetrics,
  ) {}

  /** Runs until the signal aborts, and then to the end of the rows that have begun. */
  async run(signal: AbortSignal): Promise<void> {
    this.runner.start<QueuedImport>(
      this.metrics.watch('imports', {
        queue: this.queue,
        concurrency: CONCURRENCY,
        claim: (limit) => this.queue.claim(limit),
        describeFailure: ({ id }) => `import ${id} came to a halt`,
        attempt: (job) => this.attempt(job, signal),
      }),
    );
    await Promise.all([this.retention.run(signal), this.stopAt(signal)]);
  }

  private async stopAt(signal: AbortSignal): Promise<void> {
    await waitForAbort(signal);
    await this.runner.stop(FINISH_WITHIN_MS);
  }

  private async attempt(job: Job<QueuedImport>, signal: AbortSignal): Promise<JobOutcome | void> {
    try {
      return await this.runSlice(job, signal);
    } catch (error) {
      // Counts as no attempt: an outage says nothing about the file, however long it lasts.
      if (isTransient(error)) throw error;
      if (error instanceof InvalidFieldsError)
        return { kind: 'refused', error: error.message, issues: error.issues };
      this.log.error(
        `import ${job.id}: ${getErrorMessage(error)}`,
        error instanceof Error ? error.stack : undefined,
      );
      return { kind: 'failed', error: 'An internal error' };
    } finally {
      // There may be more to do: the rows after their check, or the next slice.
      this.runner.wake();
    }
  }

  private async runSlice(job: Job<QueuedImport>, signal: AbortSignal): Promise<void> {
    if (await this.maintenance.find()) return this.queue.endSlice(job, MAINTENANCE_WAIT_MS);
    const row = await this.imports.findOneBy({ id: job.id });
    if (!row) return;
    const current = toImport(row);
    if (current.state === 'checking') return this.checking.check(job, current, signal);
    const isUndo = current.state === 'undoing';
    const work = isUndo
      ? () => this.undoing.undoBatch(current, signal)
      : () => this.applying.applyBatch(current, signal);
    for (const endsAt = performance.now() + SLICE_MS; ;) {
      if (!(await this.queue.extendLease(job))) return;
      if (!(await work())) break;
      if (performance.now() > endsAt || signal.aborted) return this.queue.endSlice(job);
      if (await this.maintenance.find()) return this.queue.endSlice(job, MAINTENANCE_WAIT_MS);
    }
    await this.queue.enter(job, isUndo ? 'undone' : 'done');
    this.log.log(`import ${current.id} ${isUndo ? 'undone' : 'done'}`, {
      account_id: current.accountId,
    });
  }
}

function waitForAbort(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
