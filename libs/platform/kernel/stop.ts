import { Logger } from '@nestjs/common';

/** Maximum duration of a shutdown (docs/operating/monitor.md). Operators kill the process some seconds later. */
const SHUTDOWN_TIMEOUT_MS = 15_000;

const STOP_SIGNALS = ['SIGTERM', 'SIGINT'] as const satisfies NodeJS.Signals[];

export type StopRequest = {
  /** Resolves at the first signal. */
  received: Promise<NodeJS.Signals>;
  /** Aborted at the same time. */
  signal: AbortSignal;
};

/**
 * Listens for the signals that stop the process, which from then on exits within a time limit. Call it first, so that a
 * signal during the start does not kill the process half-way through it. Further signals change nothing.
 */
export function listenForStop(): StopRequest {
  const stopping = new AbortController();
  const received = new Promise<NodeJS.Signals>((resolve) => {
    const stop = (signal: NodeJS.Signals) => {
      if (stopping.signal.aborted) return;
      exitAfterTimeout();
      stopping.abort();
      resolve(signal);
    };
    for (const signal of STOP_SIGNALS) process.on(signal, stop);
  });
  return { received, signal: stopping.signal };
}

/** Exits with 1 if something hangs, such as a query without a response: what it did may have been cut. */
export function exitAfterTimeout(): void {
  const timer = setTimeout(() => {
    new Logger('stop').warn('shutdown has not finished in time; exiting anyway');
    process.exit(1);
  }, SHUTDOWN_TIMEOUT_MS);
  timer.unref();
}
