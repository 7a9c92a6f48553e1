import type { Pool, PoolClient } from 'pg';
import { runOutside } from './database-waits.js';

const MIN_INTERVAL_MS = 20;

/**
 * Notifies the listeners of a channel that there is news: at once, then at most every 20 ms. NOTIFY takes a lock on the
 * whole database until its transaction is on disk, so it never shares the transaction of the news itself.
 */
export class ThrottledNotify {
  private isPending = false;
  private timer: NodeJS.Timeout | undefined;

  /** @param onFailure reports a failure; listeners poll then */
  constructor(
    private readonly pool: Pool,
    private readonly channel: string,
    private readonly onFailure: (error: unknown) => void,
  ) {}

  /**
   * Notifies listeners, now or as soon as the interval allows.
   * @param by an idle connection, or the pool
   * @returns undefined when nothing is sent now
   * @throws the error of the query, which has been reported by then
   */
  notify(by: Pool | PoolClient = this.pool): Promise<void> | undefined {
    if (this.timer) {
      this.isPending = true;
      return undefined;
    }
    // The next notification is about the news of others.
    this.timer = runOutside(() => setTimeout(() => this.tick(), MIN_INTERVAL_MS).unref());
    return runOutside(() => this.send(by));
  }

  private async send(by: Pool | PoolClient): Promise<void> {
    try {
      const text = `select pg_notify('${this.channel}', '')`;
      await by.query({ name: `notify_${this.channel}`, text });
    } catch (error) {
      this.onFailure(error);
      throw error;
    }
  }

  /** Notifies listeners without waiting. */
  notifyInBackground(): void {
    // The failure has been reported.
    this.notify()?.catch(() => undefined);
  }

  close(): void {
    clearTimeout(this.timer);
  }

  private tick(): void {
    this.timer = undefined;
    if (!this.isPending) return;
    this.isPending = false;
    this.notifyInBackground();
  }
}
