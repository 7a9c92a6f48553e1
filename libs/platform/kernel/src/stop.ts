import { Logger } from '@nestjs/common';

/** Maximum duration of a shutdown (docs/operating.md). Operators kill the process some seconds later. */
const SHUTDOWN_TIMEOUT_MS = 15_000;

/** Exits even if something hangs, such as a query without a response. */
export function exitAfterTimeout(): void {
  const timer = setTimeout(() => {
    new Logger('stop').warn('shutdown has not finished in time; exiting anyway');
    process.exit(0);
  }, SHUTDOWN_TIMEOUT_MS);
  timer.unref();
}
