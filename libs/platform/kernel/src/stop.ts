import { Logger } from '@nestjs/common';

/**
 * How long operators are told that a stop may take (docs/operating.md); they kill the process some seconds
 * later.
 */
const SHUTDOWN_TIMEOUT_MS = 15_000;

/** Ends the process although something hangs, such as a query that the database does not answer. */
export function exitAfterTimeout(): void {
  const timer = setTimeout(() => {
    new Logger('stop').warn('shutdown has not finished in time; exiting anyway');
    process.exit(0);
  }, SHUTDOWN_TIMEOUT_MS);
  timer.unref();
}
