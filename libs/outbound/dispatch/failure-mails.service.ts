import { Injectable, Logger } from '@nestjs/common';
import type pg from 'pg';
import { getNow } from '#platform/kernel/clock.js';
import { Config } from '#configuration/config.js';
import { MailOutbox } from '#outbound/messages/mail-outbox.service.js';
import { getDisabledAt, renderFailureMail, type FailureReport } from './failure-mail.js';

type SubscriptionRow = {
  id: number;
  account_id: number;
  target_url: string;
  description: string | null;
  failing_since: Date | null;
  disabled_at: Date | null;
  disabled_reason: string | null;
  last_delivery_status: number | null;
  last_delivery_error: string | null;
  store: string;
  locale: string;
  time_zone: string;
  recipients: string[];
};

const SUBSCRIPTIONS_WITH_OWNERS = {
  name: 'webhook_failure_mails',
  text: `
    select s.id, s.account_id, s.target_url, s.description, s.failing_since, s.disabled_at, s.disabled_reason,
      s.last_delivery_status, s.last_delivery_error,
      a.display_name as store, a.locale, a.time_zone,
      array(select u.email from memberships m join users u on u.id = m.user_id
            where m.account_id = s.account_id and m.role = 'owner' and u.removed_at is null
            order by u.id) as recipients
    from webhook_subscriptions s join accounts a on a.id = s.account_id
    where s.id = any ($1) order by s.id`,
};

/** Tells people about subscriptions that cannot be delivered to: in the log, and the store's owners by e-mail. */
@Injectable()
export class FailureMails {
  private readonly log = new Logger('webhook subscriptions');

  constructor(
    private readonly outbox: MailOutbox,
    private readonly config: Config,
  ) {}

  /**
   * Adds e-mails to the outbox in the transaction that records what they are about, so that each is written exactly once.
   * @returns what to log once that is committed
   */
  async write(
    client: pg.PoolClient,
    kind: FailureReport['kind'],
    subscriptionIds: number[],
  ): Promise<FailureReport[]> {
    if (subscriptionIds.length === 0) return [];
    const { rows } = await client.query<SubscriptionRow>({
      ...SUBSCRIPTIONS_WITH_OWNERS,
      values: [subscriptionIds],
    });
    const withRows = rows.map((row) => ({ row, report: this.createReport(kind, row) }));
    const mails = withRows.flatMap(({ row, report }) => {
      const mail = renderFailureMail(report, { locale: row.locale, timeZone: row.time_zone });
      return row.recipients.map((to) => ({ to, ...mail }));
    });
    await this.outbox.add(client, mails);
    return withRows.map(({ report }) => report);
  }

  logAll(reports: FailureReport[]): void {
    for (const {
      kind,
      subscriptionId,
      accountId,
      isBlocked,
      failingSince,
      disabledAt,
    } of reports) {
      const message =
        kind === 'warning'
          ? 'a webhook subscription is failing and will be disabled'
          : `a webhook subscription was disabled: ${isBlocked ? 'blocked_address' : 'failing'}`;
      this.log.warn(message, {
        subscription_id: subscriptionId,
        account_id: accountId,
        failing_since: failingSince?.toISOString(),
        disabled_at: disabledAt.toISOString(),
      });
    }
  }

  private createReport(kind: FailureReport['kind'], row: SubscriptionRow): FailureReport {
    const { failing_since: failingSince } = row;
    const scale = this.config.webhookTimeScale;
    return {
      kind,
      subscriptionId: row.id,
      accountId: row.account_id,
      store: row.store,
      description: row.description,
      targetUrl: row.target_url,
      isBlocked: row.disabled_reason === 'blocked_address',
      failingSince,
      disabledAt: row.disabled_at ?? (failingSince ? getDisabledAt(failingSince, scale) : getNow()),
      lastStatus: row.last_delivery_status,
      lastError: row.last_delivery_error,
    };
  }
}
