import { Logger } from '@nestjs/common';
import { BEGINNING, type EventStore } from '../port/event-store.js';
import { workDaily } from '../log/follow-log.js';

const PAGE = 500;
const MAX_LINES = 100;

/**
 * Looks once a day, and at the start, for what others have done to our streams on a shared server. Reads what has come to
 * the log since, so that its metric covers all of it, and then where the streams begin that somebody has made settings for:
 * these may hide more each day.
 */
export class DamageCheck {
  private readonly log = new Logger('damage check');

  constructor(private readonly eventStore: EventStore) {}

  /** Runs until the signal aborts. Several processes may do it. */
  async run(signal: AbortSignal): Promise<void> {
    let position = BEGINNING;
    await workDaily(this.log, signal, async () => {
      const page = await this.eventStore.readAll(position, PAGE);
      const last = page.at(-1);
      if (last) ({ position } = last);
      else await this.report();
      return last !== undefined;
    });
  }

  private async report(): Promise<void> {
    const { differences } = await this.eventStore.describeDamage();
    for (const difference of differences.slice(0, MAX_LINES)) this.log.error(difference);
    if (differences.length > MAX_LINES)
      this.log.error(`${differences.length - MAX_LINES} more: inkpad verify lists them`);
  }
}
