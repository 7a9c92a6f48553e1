import type { Logger } from '@nestjs/common';
import { Gauge, type Registry } from 'prom-client';
import { getErrorMessage } from './errors.js';

type Options<L extends string> = { name: string; help: string; labelNames?: readonly L[] };

/** Adds a gauge that is set whenever it is scraped. */
export function addGauge<L extends string = never>(
  registry: Registry,
  options: Options<L>,
  collect: (gauge: Gauge<L>) => void | Promise<void>,
): void {
  const gauge: Gauge<L> = new Gauge({
    ...options,
    registers: [registry],
    collect: () => collect(gauge),
  });
}

/**
 * Shares what gauges read, such as from the database, between scrapes within an interval. While it fails, the gauges keep
 * their values.
 * @param subject what is read, for the log
 */
export function shareReads<A extends unknown[]>(
  log: Logger,
  subject: string,
  everyMs: number,
  read: (...gauges: A) => Promise<void>,
): (...gauges: A) => Promise<void> {
  let readAt = -Infinity;
  let reading = Promise.resolve();
  return (...gauges) => {
    if (performance.now() - readAt < everyMs) return reading;
    readAt = performance.now();
    reading = read(...gauges).catch((error: unknown) =>
      log.warn(`${subject} could not be read: ${getErrorMessage(error)}`),
    );
    return reading;
  };
}
