import type { Logger } from '@nestjs/common';

/** Logs a failure of what is tried again and again once, until it has succeeded. */
export class FailureLog {
  private isFailing = false;

  constructor(private readonly log: Pick<Logger, 'log' | 'warn'>) {}

  fail(message: string): void {
    if (!this.isFailing) this.log.warn(message);
    this.isFailing = true;
  }

  /** @param message logged when it has failed before */
  succeed(message?: string): void {
    if (this.isFailing && message !== undefined) this.log.log(message);
    this.isFailing = false;
  }
}
