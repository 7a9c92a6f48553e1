import type { Pool, PoolClient } from 'pg';

export const CHANNEL = 'inkpad_events';

/** Number of announcements at once after a quiet time. From then on there is one every EVERY_MS. */
const BURST_SIZE = 3;
const EVERY_MS = 20;

/**
 * Notifies subscribers in all processes that something was recorded. Never inside an append: NOTIFY takes a lock on the
 * whole database until its transaction is on disk.
 */
export class Announcements {
  private remaining = BURST_SIZE;
  private isPending = false;
  private timer: NodeJS.Timeout | undefined;

  /** @param onFailure reports a failure; subscribers poll then */
  constructor(
    private readonly pool: Pool,
    private readonly onFailure: (error: unknown) => void,
  ) {}

  /**
   * Notifies subscribers, at once or with the next tick.
   * @param by an idle connection, or the pool
   * @throws the error of the query, which has been reported by then
   */
  async announce(by: Pool | PoolClient): Promise<void> {
    if (this.remaining === 0) {
      this.isPending = true;
      return;
    }
    this.remaining--;
    this.timer ??= setInterval(() => this.tick(), EVERY_MS).unref();
    try {
      await by.query({ name: 'es_notify', text: `select pg_notify('${CHANNEL}', '')` });
    } catch (error) {
      this.onFailure(error);
      throw error;
    }
  }

  /** Notifies subscribers without waiting. */
  announceInBackground(): void {
    // The failure has been reported.
    this.announce(this.pool).catch(() => undefined);
  }

  close(): void {
    clearInterval(this.timer);
  }

  private tick(): void {
    this.remaining++;
    if (this.isPending) {
      this.isPending = false;
      this.announceInBackground();
    } else if (this.remaining === BURST_SIZE) {
      clearInterval(this.timer);
      this.timer = undefined;
    }
  }
}
