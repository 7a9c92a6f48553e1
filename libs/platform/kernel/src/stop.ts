import { Logger } from '@nestjs/common';

/**
 * How long operators are told that a stop may take (docs/operating.md); they kill the process some seconds
 * later.
 */
const STOPPED_WITHIN_MS = 15_000;

/** Ends the process although something hangs, such as a query that the database does not answer. */
export function stopInTime(): void {
  const timer = setTimeout(() => {
    new Logger('stop').warn('shutdown has not finished in time; exiting anyway');
    process.exit(0);
  }, STOPPED_WITHIN_MS);
  timer.unref();
}
