import type { Pool, PoolClient } from 'pg';

export const CHANNEL = 'inkpad_events';

/** So many at once after a quiet time, then one as often as this. */
const AT_ONCE = 3;
const EVERY_MS = 20;

/**
 * Tells subscribers in all processes that something was recorded. Never inside an append: NOTIFY takes a lock on the
 * whole database until its transaction is on disk.
 */
export class Announcements {
  private left = AT_ONCE;
  private isWanted = false;
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
    if (this.left === 0) {
      this.isWanted = true;
      return;
    }
    this.left--;
    this.timer ??= setInterval(() => this.tick(), EVERY_MS).unref();
    try {
      await by.query({ name: 'es_notify', text: `select pg_notify('${CHANNEL}', '')` });
    } catch (error) {
      this.onFailure(error);
      throw error;
    }
  }

  /** For whoever does not wait for it. */
  announceSoon(): void {
    // Its failure has been reported.
    this.announce(this.pool).catch(() => undefined);
  }

  close(): void {
    clearInterval(this.timer);
  }

  private tick(): void {
    this.left++;
    if (this.isWanted) {
      this.isWanted = false;
      this.announceSoon();
    } else if (this.left === AT_ONCE) {
      clearInterval(this.timer);
      this.timer = undefined;
    }
  }
}
