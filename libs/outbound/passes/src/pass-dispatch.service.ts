import { Inject, Injectable, Logger } from '@nestjs/common';
import { getErrorMessage } from '#kernel/errors.js';
import { pause } from '#kernel/pause.js';
import { isTransient } from '#database/connection.js';
import { PASS_SENDERS, type PassOutcome, type PassSender } from './pass-sender.js';
import { getRetryDelayMs } from './pass-retry.js';
import { PassUpdates, type ClaimedUpdate } from './pass-updates.service.js';

const POLL_INTERVAL_MS = 500;

/**
 * Sends the updates of passes, each channel apart from the others, so that a vendor that hangs does not delay another.
 */
@Injectable()
export class PassDispatch {
  private readonly log = new Logger('pass updates');
  private readonly stopping = new AbortController();
  private readonly cut = new AbortController();
  private running: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly updates: PassUpdates,
    @Inject(PASS_SENDERS) private readonly senders: PassSender[],
  ) {}

  start(): void {
    const enabled = this.senders.filter((sender) => sender.enabled);
    this.running = Promise.all(enabled.map((sender) => this.run(sender, this.stopping.signal)));
  }

  /** Stops sending. Attempts that take longer than the time allowed are aborted, and made again later. */
  async stop(milliseconds: number): Promise<void> {
    this.stopping.abort();
    const late = setTimeout(() => this.cut.abort(), milliseconds);
    await this.running;
    clearTimeout(late);
  }

  private async run(sender: PassSender, signal: AbortSignal): Promise<void> {
    const running = new Set<Promise<void>>();
    while (!signal.aborted) {
      try {
        const freeCount = sender.concurrency - running.size;
        const claimed = freeCount > 0 ? await this.updates.claim(sender.channel, freeCount) : [];
        for (const update of claimed) {
          const attempt = this.attempt(sender, update).finally(() => running.delete(attempt));
          running.add(attempt);
        }
        if (running.size === sender.concurrency) {
          await Promise.race(running);
          continue;
        }
      } catch (error) {
        const level = isTransient(error) ? 'warn' : 'error';
        this.log[level](`updates of ${sender.channel} cannot be read: ${getErrorMessage(error)}`);
      }
      await pause(POLL_INTERVAL_MS, signal);
    }
    await Promise.all(running);
  }

  /** Sends one update. Never throws: an outcome that cannot be recorded is claimed again when its lease has ended. */
  private async attempt(sender: PassSender, update: ClaimedUpdate): Promise<void> {
    const description = `the update of ${update.channel} ${update.target}`;
    let outcome: PassOutcome;
    try {
      outcome = await sender.send(update, this.cut.signal);
    } catch (error) {
      const stack = error instanceof Error && !isTransient(error) ? error.stack : undefined;
      if (stack) this.log.error(`${description} failed: ${getErrorMessage(error)}`, stack);
      outcome = { kind: 'failed', error: getErrorMessage(error) };
    }
    try {
      if (outcome.kind === 'failed') {
        const delayMs = getRetryDelayMs(update.attempts, Math.random(), outcome.retryInMs);
        this.log.warn(`${description} failed (${outcome.error}); next attempt in ${delayMs} ms`);
        await this.updates.putOff(update, delayMs, outcome.error);
        return;
      }
      if (outcome.kind === 'refused')
        this.log.error(`${description} was refused: ${outcome.error}`);
      await this.updates.finish(update);
    } catch (error) {
      this.log.warn(
        `${description} is made again, since its result cannot be stored: ${getErrorMessage(error)}`,
      );
    }
  }
}
