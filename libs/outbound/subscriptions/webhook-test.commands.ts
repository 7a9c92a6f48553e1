import { Logger } from '@nestjs/common';
import { Command, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import { Pool } from 'pg';
import { getNow } from '#platform/kernel/clock.js';
import type { CommandContext } from '#platform/kernel/aggregate.js';
import { getErrorMessage, RejectedError, UnavailableError } from '#platform/kernel/errors.js';
import { toPublicEventId } from '#platform/kernel/public-id.js';
import { Batcher } from '#platform/database/batcher.js';
import { query } from '#platform/database/connection.js';
import { RepeatedAudits } from '#platform/event-store/commands/repeated-audits.service.js';
import { getAddressKey } from '#platform/http/rate-limit.js';
import {
  formatBody,
  TEST_EVENT,
  renderTestEnvelope,
} from '#outbound/public-events/public-events.js';
import { createTestEventId } from '#outbound/public-events/test-event-id.js';
import { getError, getHttpStatus, type AttemptResult } from '#outbound/sending/outcome.js';
import { WebhookSecrets } from '#outbound/sending/webhook-secrets.service.js';
import { WebhookClient, type Attempt } from '#outbound/sending/webhook.client.js';
import { toWebhookTestJson, type WebhookTestJson } from './webhook-subscription.dto.js';
import { toSubscription, type WebhookSubscriptionRow } from './webhook-subscription.entity.js';
import { toAuditedSettings } from './webhook-subscription.js';
import { WebhookSubscriptionTable } from './webhook-subscription-table.service.js';
import { ISSUES } from '#translations/issues.js';

const MAX_TESTS = 32;
const MAX_TESTS_PER_STORE = 4;

/** Reports that a store has so many tests running that another one was not sent. */
export class TestsRunningError extends UnavailableError {
  constructor() {
    super('Other tests of this store are still running');
  }
}

export class TestWebhookSubscription extends Command<WebhookTestJson> {
  constructor(
    readonly context: CommandContext,
    readonly id: number,
  ) {
    super();
  }
}

/** Sends one signed event at once, from the api process; it does not count as a delivery (HOOK-49). */
@CommandHandler(TestWebhookSubscription)
export class TestWebhookSubscriptionHandler implements ICommandHandler<TestWebhookSubscription> {
  private readonly log = new Logger('webhook tests');
  /** A receiver may take ten seconds to respond; slow ones must not fill the process. */
  private readonly sending = new Batcher<Attempt, AttemptResult>(
    MAX_TESTS,
    1,
    (attempts) => Promise.allSettled(attempts.map((attempt) => this.client.send(attempt))),
    { isElsewhere: true },
  );
  private readonly runningTests = new Map<number, number>();

  constructor(
    private readonly pool: Pool,
    private readonly repeated: RepeatedAudits,
    private readonly table: WebhookSubscriptionTable,
    private readonly client: WebhookClient,
    private readonly secrets: WebhookSecrets,
  ) {}

  async execute({ context, id }: TestWebhookSubscription): Promise<WebhookTestJson> {
    const { accountId } = context;
    const row = await this.table.get(accountId, id);
    const position = await this.findLastPosition(accountId);
    const eventId = toPublicEventId(createTestEventId({ accountId, position, sentAt: getNow() }));
    const attempt = {
      url: row.target_url,
      ...this.openSecrets(row),
      eventId,
      type: TEST_EVENT,
      body: formatBody(
        Buffer.from(renderTestEnvelope(eventId, row, getNow())),
        row.payload_format,
        row.personal_data,
      ),
    };
    const { outcome, at, durationMs } = await this.limitTests(accountId, async () => {
      const { target_url } = toAuditedSettings(toSubscription(row));
      await this.record(context, id, { event_id: eventId, target_url });
      return this.sending.add(attempt);
    });
    const status = getHttpStatus(outcome);
    const error = getError(outcome);
    // The test was sent, so failing to store its result is no reason to report an error.
    const test = { at: at.toISOString(), status, error, duration_ms: durationMs };
    await this.table.saveTest(id, test).catch((storeError: unknown) =>
      this.log.warn(`the result of a test could not be stored: ${getErrorMessage(storeError)}`, {
        subscription_id: id,
      }),
    );
    return toWebhookTestJson(eventId, status, error);
  }

  private async findLastPosition(accountId: number): Promise<number> {
    const [row] = await query<{ seq: number }>(this.pool, {
      name: 'webhook_test_position',
      text: 'select seq from webhook_events where account_id = $1 order by seq desc limit 1',
      values: [accountId],
    });
    return row?.seq ?? 0;
  }

  /** Audits a test before it is sent. Its result depends on the receiver, so no response is stored for the request. */
  private async record(context: CommandContext, id: number, what: object): Promise<void> {
    const { keyed: _, ...by } = context;
    const { actor, ipAddress } = by;
    const kind = ['webhook test', id, actor.type, actor.id, getAddressKey(ipAddress)];
    await this.repeated.write(by, kind, (transaction, times) =>
      transaction.audit({
        accountIds: [by.accountId],
        type: 'webhook_subscription.tested',
        subject: { webhook_subscription_id: id, ...what, times },
      }),
    );
  }

  private openSecrets(
    row: WebhookSubscriptionRow,
  ): Pick<Attempt, 'secret' | 'previousSecret' | 'headers'> {
    const { id, secret, previous_secret: previous, previous_secret_until: until } = row;
    const isStillSigning = previous !== null && until !== null && until > getNow();
    const opened = this.secrets.open(id, secret);
    if (opened === null) throw new RejectedError({ base: [ISSUES.secret_lost] });
    const previousSecret = isStillSigning ? this.secrets.open(id, previous) : null;
    const headers = this.secrets.openHeaders(id, row.headers);
    if (headers === null) throw new RejectedError({ base: [ISSUES.headers_lost] });
    return { secret: opened, ...(previousSecret !== null && { previousSecret }), headers };
  }

  /** Limits concurrent tests of a store. @throws TestsRunningError */
  private async limitTests(
    accountId: number,
    send: () => Promise<AttemptResult>,
  ): Promise<AttemptResult> {
    const runningCount = this.runningTests.get(accountId) ?? 0;
    if (runningCount >= MAX_TESTS_PER_STORE) throw new TestsRunningError();
    this.runningTests.set(accountId, runningCount + 1);
    try {
      return await send();
    } finally {
      const remainingCount = (this.runningTests.get(accountId) ?? 1) - 1;
      if (remainingCount > 0) this.runningTests.set(accountId, remainingCount);
      else this.runningTests.delete(accountId);
    }
  }
}
