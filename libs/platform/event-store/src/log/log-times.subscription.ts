import { Injectable, Logger } from '@nestjs/common';
import { retryUntilAborted } from './follow-log.js';
import { LogTimes } from './log-times.service.js';

/** Keeps the times of the log current, so that no query about the past has to read much of it. */
@Injectable()
export class LogTimesFollower {
  private readonly log = new Logger('log times');

  constructor(private readonly times: LogTimes) {}

  /** Runs until the signal aborts. Several processes may run it. */
  async run(signal: AbortSignal): Promise<void> {
    await retryUntilAborted(this.log, signal, (onSuccess) => this.times.follow(signal, onSuccess));
  }
}
