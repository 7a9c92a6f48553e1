import type { Logger } from '@nestjs/common';

const INTERVAL_MS = 60_000;

/** Warns of what is tried again every few seconds, at most once a minute. */
export class RareWarnings {
  private readonly warnedAt = new Map<string, number>();

  constructor(private readonly log: Logger) {}

  /** @param what comes in front of the reason, and is warned of once a minute whatever the reason */
  warn(what: string, reason: string): void {
    const now = performance.now();
    if (now - (this.warnedAt.get(what) ?? -Infinity) < INTERVAL_MS) return;
    this.warnedAt.set(what, now);
    this.log.warn(`${what}: ${reason}`);
  }
}
