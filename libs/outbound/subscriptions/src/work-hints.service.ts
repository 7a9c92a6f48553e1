import { Injectable, Logger } from '@nestjs/common';
import { Pool } from 'pg';
import { getErrorMessage } from '#kernel/errors.js';

/** The channel that is notified of new work and changed subscriptions; dispatchers listen to it. */
export const WORK_CHANNEL = 'inkpad_webhooks';

const MIN_INTERVAL_MS = 20;

/** Tells dispatchers to check for work now. This is only a hint: they also check by themselves a little later. */
@Injectable()
export class WorkHints {
  private readonly log = new Logger('webhook deliveries');
  private timer: NodeJS.Timeout | undefined;
  private isPending = false;

  constructor(private readonly pool: Pool) {}

  /**
   * Reports new work: at once, then at most every 20 ms, because NOTIFY takes a database-wide lock at commit.
   */
  wake(): void {
    if (this.timer) {
      this.isPending = true;
      return;
    }
    void this.notify('');
    this.timer = setTimeout(() => {
      this.timer = undefined;
      if (this.isPending) {
        this.isPending = false;
        this.wake();
      }
    }, MIN_INTERVAL_MS);
    this.timer.unref();
  }

  /** Reports that one subscription has changed or has new work. */
  async notifyAbout(subscriptionId: number): Promise<void> {
    await this.notify(String(subscriptionId));
  }

  private async notify(payload: string): Promise<void> {
    try {
      await this.pool.query({
        name: 'webhook_hint',
        text: `select pg_notify('${WORK_CHANNEL}', $1)`,
        values: [payload],
      });
    } catch (error) {
      this.log.warn(`dispatchers could not be notified and will poll: ${getErrorMessage(error)}`);
    }
  }
}
