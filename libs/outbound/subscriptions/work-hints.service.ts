import { Injectable, Logger } from '@nestjs/common';
import { Pool } from 'pg';
import { ThrottledNotify } from '#platform/database/throttled-notify.js';
import { getErrorMessage } from '#platform/kernel/errors.js';

/** The channel that is notified of new work and changed subscriptions; dispatchers listen to it. */
export const WORK_CHANNEL = 'inkpad_webhooks';

/** Tells dispatchers to check for work now. This is only a hint: they also check by themselves a little later. */
@Injectable()
export class WorkHints {
  private readonly log = new Logger('webhook deliveries');
  private readonly newWork: ThrottledNotify;

  constructor(private readonly pool: Pool) {
    this.newWork = new ThrottledNotify(pool, WORK_CHANNEL, (error) => this.reportFailure(error));
  }

  /** Reports new work. */
  wake(): void {
    this.newWork.notifyInBackground();
  }

  /** Reports that one subscription has changed or has new work. */
  async notifyAbout(subscriptionId: number): Promise<void> {
    try {
      await this.pool.query({
        name: 'webhook_hint',
        text: `select pg_notify('${WORK_CHANNEL}', $1)`,
        values: [String(subscriptionId)],
      });
    } catch (error) {
      this.reportFailure(error);
    }
  }

  private reportFailure(error: unknown): void {
    this.log.warn(`dispatchers could not be notified and will poll: ${getErrorMessage(error)}`);
  }
}
