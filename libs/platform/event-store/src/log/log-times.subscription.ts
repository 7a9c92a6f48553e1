import { Injectable, Logger } from '@nestjs/common';
import { getMessageWithCause } from '#kernel/errors.js';
import { pause } from '#kernel/pause.js';
import { LogTimes } from './log-times.service.js';

const POLL_MS = 1_000;
const RETRY_MS = 5_000;

/** Keeps the times of the log current, so that no query about the past has to read much of it. */
@Injectable()
export class LogTimesFollower {
  private readonly log = new Logger('log times');

  constructor(private readonly times: LogTimes) {}

  /** Runs until the signal aborts. Several processes may run it. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        const hasMore = await this.times.addDueEntry();
        if (!hasMore) await pause(POLL_MS, signal);
      } catch (error) {
        this.log.warn(`not written, trying again in 5 s: ${getMessageWithCause(error)}`);
        await pause(RETRY_MS, signal);
      }
    }
  }
}
