import { Injectable, Logger } from '@nestjs/common';
import { Pool } from 'pg';
import { messageOf } from '#kernel/errors.js';

/** Whoever adds work or changes a subscription says so here; dispatchers listen. */
export const WORK_CHANNEL = 'inkpad_webhooks';

const AT_MOST_EVERY_MS = 20;

/** Tells dispatchers to look now. Only ever a hint: they look by themselves too, somewhat later. */
@Injectable()
export class WorkHints {
  private readonly log = new Logger('webhook deliveries');
  private timer: NodeJS.Timeout | undefined;
  private wanted = false;

  constructor(private readonly pool: Pool) {}

  /** There is new work: at once, then at most every 20 ms, since NOTIFY locks the database at commit. */
  wake(): void {
    if (this.timer) {
      this.wanted = true;
      return;
    }
    void this.notify('');
    this.timer = setTimeout(() => {
      this.timer = undefined;
      if (this.wanted) {
        this.wanted = false;
        this.wake();
      }
    }, AT_MOST_EVERY_MS);
    this.timer.unref();
  }

  /** One subscription has changed, or has got something to do. */
  async about(subscriptionId: number): Promise<void> {
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
      this.log.warn(`dispatchers will poll: ${messageOf(error)}`);
    }
  }
}
