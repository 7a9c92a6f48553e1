import { Injectable } from '@nestjs/common';
import type { CommandContext } from '#platform/kernel/aggregate.js';
import { RepeatedAudits } from '#platform/event-store/commands/repeated-audits.service.js';
import type { PageRange } from '#platform/http/page.js';
import { getAddressKey } from '#platform/http/rate-limit.js';
import { WebhookSecrets } from '#outbound/sending/webhook-secrets.service.js';
import {
  toWebhookSubscriptionJson,
  toWebhookSubscriptionSecretJson,
  type WebhookSubscriptionJson,
  type WebhookSubscriptionSecretJson,
} from './webhook-subscription.dto.js';
import { toSubscription } from './webhook-subscription.entity.js';
import { WebhookSubscriptionTable } from './webhook-subscription-table.service.js';
import { EVERY_EVENT, type LastTest } from './webhook-subscription.js';
import { PUBLIC_EVENTS } from '#outbound/public-events/public-events.js';

@Injectable()
export class WebhookSubscriptionsService {
  constructor(
    private readonly table: WebhookSubscriptionTable,
    private readonly secrets: WebhookSecrets,
    private readonly repeated: RepeatedAudits,
  ) {}

  /** Lists subscriptions, oldest first. An unknown event has none, not even those to every event. */
  async list(
    accountId: number,
    event: string | null,
    range: PageRange,
  ): Promise<WebhookSubscriptionJson[]> {
    const isKnownEvent = event === null || [EVERY_EVENT, ...PUBLIC_EVENTS].includes(event);
    if (!isKnownEvent) return [];
    return (await this.table.list(accountId, event, range)).map(toWebhookSubscriptionJson);
  }

  /** Finds a subscription with its secret. @throws NotFoundError */
  async get(accountId: number, id: number): Promise<WebhookSubscriptionSecretJson> {
    const row = await this.table.get(accountId, id);
    const secret = this.secrets.open(row.id, row.secret);
    // Must be a string (HOOK-66); `last_delivery_error` and `test` report what is wrong.
    return toWebhookSubscriptionSecretJson(toSubscription(row), secret ?? '');
  }

  /** Finds the result of the latest test; null when there was none. @throws NotFoundError */
  async findLastTest(accountId: number, id: number): Promise<LastTest | null> {
    return (await this.table.get(accountId, id)).last_test;
  }

  /** Does the same for a caller who sees the secret, and audits that. @throws NotFoundError */
  async showSecret(by: CommandContext, id: number): Promise<WebhookSubscriptionSecretJson> {
    const { accountId, actor, ipAddress } = by;
    const subscription = await this.get(accountId, id);
    const kind = ['webhook secret', id, actor.type, actor.id, getAddressKey(ipAddress)];
    await this.repeated.write(by, kind, (transaction, times) =>
      transaction.audit({
        accountIds: [accountId],
        type: 'webhook_subscription.secret_read',
        subject: { webhook_subscription_id: id, times },
      }),
    );
    return subscription;
  }
}
