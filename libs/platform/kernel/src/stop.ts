import { Logger } from '@nestjs/common';

/** What operators allow a process (docs/operating.md); they kill it some seconds later. */
const STOPPED_WITHIN_MS = 15_000;

/** Once it was asked to stop: whatever hangs, such as a database that leaves a question open, is left. */
export function stopInTime(): void {
  const timer = setTimeout(() => {
    new Logger('stop').warn('not all of it has ended in time; what is left is cut off');
    process.exit(0);
  }, STOPPED_WITHIN_MS);
  timer.unref();
}
