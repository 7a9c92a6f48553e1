import type { Logger } from '@nestjs/common';
import { getNowMs } from '#platform/kernel/clock.js';
import { getErrorMessage } from '#platform/kernel/errors.js';
import { FailureLog } from '#platform/kernel/failure-log.js';
import { pause } from '#platform/kernel/pause.js';
import { drawPollMs } from '#platform/kernel/poll-interval.js';
import { getRetryDelayMs } from '#platform/kernel/retry-schedule.js';
import { WakeSignal } from '#platform/kernel/wake-signal.js';
import { DATABASE_RETRY_MS, isTransient } from './connection.js';
import { LEASE_SECONDS, type Job, type JobOutcome, type JobQueue } from './job-queue.js';

/** How long free slots wait for more, while a backlog is worked off. */
const GATHER_MS = 50;
/** Between attempts while the database or the event store is unavailable. */
const OUTAGE_RETRY_MS = 5_000;

/** When what was not sent on purpose is due again. */
const UNSENT_RETRY_MS = 1_000;

/** How the jobs of a queue are done. */
export type JobHandler<Item extends object> = {
  queue: JobQueue<Item>;
  concurrency: number;
  claim: (limit: number) => Promise<Job<Item>[]>;
  /** The partition that is claimed, if the table announces it: jobs of others then wake nobody. */
  partition?: readonly string[];
  /** Says in the log which job failed. */
  describeFailure: (job: Job<Item>) => string;
  /**
   * Makes an attempt. Throws when the outcome is unknown or cannot be stored: the job is claimed again after its lease, or
   * seconds later when something is only unavailable, which counts as no attempt, however long it lasts.
   * @param cut aborts when the process must end
   * @param isLeased to be asked right before something is sent that must not arrive twice
   * @returns nothing when the queue has been changed already
   */
  attempt: (
    job: Job<Item>,
    cut: AbortSignal,
    isLeased: () => boolean,
  ) => Promise<JobOutcome | void>;
  /** Returns until when a job is retried; without it or its result, as long as the schedule says. */
  getGiveUpAt?: (job: Job<Item>) => Date | undefined;
};

/** Runs queues, each apart from the others, so that a server that hangs delays nothing else. */
export class JobRunner {
  private readonly stopping = new AbortController();
  private readonly cut = new AbortController();
  private readonly running: Promise<void>[] = [];
  private readonly wakeSignals: WakeSignal[] = [];

  constructor(private readonly log: Logger) {}

  start<Item extends object>(handler: JobHandler<Item>): void {
    const wakeSignal = new WakeSignal();
    this.wakeSignals.push(wakeSignal);
    this.running.push(
      runJobs(handler, this.log, this.stopping.signal, this.cut.signal, wakeSignal),
    );
  }

  /** Looks for jobs now instead of at the next poll. */
  wake(): void {
    for (const wakeSignal of this.wakeSignals) wakeSignal.wake();
  }

  /** Stops. Attempts that take longer than the time allowed are aborted, and made again later. */
  async stop(milliseconds: number): Promise<void> {
    this.stopping.abort();
    const timeout = setTimeout(() => this.cut.abort(), milliseconds);
    await Promise.all(this.running);
    clearTimeout(timeout);
  }
}

/**
 * Does jobs until the signal aborts, whatever happens to the database. Returns when the attempts have ended.
 * @param cut aborts the attempts
 */
export async function runJobs<Item extends object>(
  handler: JobHandler<Item>,
  log: Logger,
  signal: AbortSignal,
  cut: AbortSignal,
  wakeSignal = new WakeSignal(),
): Promise<void> {
  const running = new Set<Promise<void>>();
  const failures = new FailureLog(log);
  const endAnnouncements = handler.queue.onDue(
    (delayMs) => wakeSignal.wakeIn(delayMs),
    handler.partition,
  );
  while (!signal.aborted) {
    try {
      const jobs = await handler.claim(handler.concurrency - running.size);
      failures.succeed();
      if (signal.aborted) {
        // Nothing new is begun from now on: another process may have them at once.
        for (const job of jobs) await handler.queue.release(job);
        break;
      }
      for (const job of jobs) {
        const attempt = runJob(handler, job, log, cut).finally(() => running.delete(attempt));
        running.add(attempt);
      }
      if (running.size === handler.concurrency) await waitForSlots(running);
      // Attempts that ended during the claim have left room for more jobs, which nobody announces again.
      if (jobs.length > 0) continue;
    } catch (error) {
      const message = `no work can be claimed: ${getErrorMessage(error)}`;
      if (isTransient(error)) failures.fail(message);
      else log.error(message);
      wakeSignal.wakeIn(DATABASE_RETRY_MS);
    }
    // What becomes due within seconds is announced; polls find what becomes due later.
    await wakeSignal.wait(drawPollMs(), signal);
  }
  endAnnouncements();
  await Promise.all(running);
}

/**
 * Waits until half of the slots are free, so that the jobs of a backlog are claimed and read together: that took a third of the
 * processor time from an e-mail of a campaign. Waits no longer than a moment after the first one, since others may hang.
 */
async function waitForSlots(running: Set<Promise<void>>): Promise<void> {
  const enough = running.size / 2;
  await Promise.race(running);
  let timer: NodeJS.Timeout | undefined;
  const moment = new Promise<'over'>((resolve) => {
    timer = setTimeout(resolve, GATHER_MS, 'over');
  });
  while (running.size > enough && (await Promise.race([moment, ...running])) !== 'over');
  clearTimeout(timer);
}

/** Makes an attempt and records its outcome. Never throws. */
export async function runJob<Item extends object>(
  handler: JobHandler<Item>,
  job: Job<Item>,
  log: Logger,
  cut: AbortSignal,
): Promise<void> {
  const { queue, describeFailure, attempt } = handler;
  const reportFault = (error: unknown): void =>
    log.error(
      `${describeFailure(job)} (${getErrorMessage(error)}), and is tried again in a minute`,
      error instanceof Error ? error.stack : undefined,
    );
  let record = () => queue.release(job, OUTAGE_RETRY_MS);
  try {
    const outcome = await attempt(job, cut, () => queue.isLeased(job));
    if (!outcome) return;
    record = planRecord(handler, job, outcome, log);
    await record();
  } catch (error) {
    if (!isTransient(error)) return reportFault(error);
    log.warn(`${describeFailure(job)} (${getErrorMessage(error)}), and goes on when that is over`);
    await recordLater(record, job, cut).catch(reportFault);
  }
}

/** Decides what becomes of a job, and logs it. @returns how to record that, as often as necessary */
function planRecord<Item extends object>(
  { queue, describeFailure, getGiveUpAt }: JobHandler<Item>,
  job: Job<Item>,
  outcome: JobOutcome,
  log: Logger,
): () => Promise<void> {
  if (outcome.kind === 'unsent') return () => queue.release(job, UNSENT_RETRY_MS);
  if (outcome.kind === 'failed') {
    const { error, retryInMs } = outcome;
    const giveUpAt = getGiveUpAt?.(job);
    const delayMs = getRetryDelayMs(queue.schedule, job.attempts, {
      requestedMs: retryInMs,
      remainingMs: giveUpAt && giveUpAt.getTime() - getNowMs(),
      fraction: Math.random(),
    });
    if (delayMs !== undefined) {
      log.warn(`${describeFailure(job)} (${error}); next attempt in ${delayMs} ms`);
      return () => queue.postpone(job, delayMs, error);
    }
  }
  if (outcome.kind !== 'done')
    log.error(`${describeFailure(job)} (${outcome.error}), and is not tried again`);
  return () => queue.finish(job, outcome);
}

/**
 * Records what became of a job as soon as the database is back, so that it goes on then, and what was sent is not sent again.
 * Ends with the lease, after which it would change nothing.
 */
async function recordLater(
  record: () => Promise<void>,
  { claimedAt }: { claimedAt: number },
  cut: AbortSignal,
): Promise<void> {
  const leasedUntil = claimedAt + LEASE_SECONDS * 1_000;
  do {
    try {
      return await record();
    } catch (error) {
      if (!isTransient(error)) throw error;
    }
    await pause(DATABASE_RETRY_MS, cut);
  } while (performance.now() < leasedUntil && !cut.aborted);
}
