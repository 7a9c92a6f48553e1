import type { Pool, PoolClient } from 'pg';

export const CHANNEL = 'inkpad_events';

/** So many at once after a quiet time, then one as often as this. */
const BURST_SIZE = 3;
const EVERY_MS = 20;

/**
 * Tells subscribers in all processes that something was recorded. Never inside an append: NOTIFY takes a lock on the
 * whole database until its transaction is on disk.
 */
export class Announcements {
  private remaining = BURST_SIZE;
  private isPending = false;
  private timer: NodeJS.Timeout | undefined;

  /** @param onFailure subscribers will poll */
  constructor(
    private readonly pool: Pool,
    private readonly onFailure: (error: unknown) => void,
  ) {}

  /**
   * @param by a connection that has nothing else to do, or any of the pool
   * @throws as the query does, which has been reported by then
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

  /** For whoever does not wait for it. */
  announceInBackground(): void {
    // Its failure has been reported.
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
