import { Logger } from '@nestjs/common';
import { Command, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import { Pool } from 'pg';
import type { CommandContext } from '#kernel/aggregate.js';
import { Config } from '#configuration/config.js';
import {
  InvalidFieldsError,
  getErrorMessage,
  NotFoundError,
  RejectedError,
  UnavailableError,
} from '#kernel/errors.js';
import { toPublicEventId } from '#kernel/public-id.js';
import { createId } from '#kernel/randomness.js';
import { IdTakenError, withNewId } from '#database/ids.js';
import { EventStore } from '#event-store/port/event-store.js';
import { Batcher } from '#database/batcher.js';
import { RepeatedAudits } from '#event-store/commands/repeated-audits.service.js';
import {
  AuditedWrites,
  type AuditedTransaction,
} from '#event-store/commands/audited-writes.service.js';
import { getAddressKey } from '#http/rate-limit.js';
import { formatPosition } from '#event-store/port/position.js';
import { DeliveryRequests } from './delivery-requests.service.js';
import { formatBody, TEST_EVENT, renderTestEnvelope } from '#public-events/public-events.js';
import { NameLookup } from '#sending/name-lookup.client.js';
import {
  isBlockedAddress,
  parseLiteralAddress,
  NOT_PUBLIC,
  findTargetUrlError,
} from '#sending/target-address.js';
import { WebhookClient, type Attempt } from '#sending/webhook.client.js';
import { getGiveUpBefore } from './webhook-delivery.js';
import { SECRET_LOST, WebhookSecrets } from '#sending/webhook-secrets.service.js';
import {
  toWebhookSubscriptionJson,
  toWebhookSubscriptionSecretJson,
  toWebhookTestJson,
  type WebhookSubscriptionJson,
  type WebhookSubscriptionSecretJson,
  type WebhookTestJson,
} from './webhook-subscription.dto.js';
import { toSubscription, type WebhookSubscriptionRow } from './webhook-subscription.entity.js';
import { toAuditedChanges, toAuditedSettings, changeSubscription } from './webhook-subscription.js';
import type {
  SubscriptionAttributes,
  SubscriptionChanges,
  WebhookSubscription,
} from './webhook-subscription.js';
import { WebhookSubscriptionTable } from './webhook-subscription-table.service.js';
import { getError, getHttpStatus, type AttemptResult } from '#sending/outcome.js';

const TABLE = 'webhook_subscriptions';
const NAME_LOOKUP_MS = 1_000;
const MAX_TESTS = 32;
const MAX_TESTS_PER_STORE = 4;

export class CreateWebhookSubscription extends Command<WebhookSubscriptionSecretJson> {
  constructor(
    readonly context: CommandContext,
    readonly attributes: SubscriptionAttributes,
  ) {
    super();
  }
}

@CommandHandler(CreateWebhookSubscription)
export class CreateWebhookSubscriptionHandler implements ICommandHandler<CreateWebhookSubscription> {
  constructor(
    private readonly writes: AuditedWrites,
    private readonly table: WebhookSubscriptionTable,
    private readonly pool: Pool,
    private readonly eventStore: EventStore,
    private readonly names: NameLookup,
    private readonly config: Config,
    private readonly secrets: WebhookSecrets,
  ) {}

  async execute({
    context,
    attributes,
  }: CreateWebhookSubscription): Promise<WebhookSubscriptionSecretJson> {
    await assertTarget(attributes.targetUrl, this.names, this.config);
    // The id is allocated before the insert, because the secret is sealed to it.
    return withNewId(this.pool, TABLE, (id) => this.create(id, context, attributes));
  }

  private async create(
    id: number,
    context: CreateWebhookSubscription['context'],
    attributes: CreateWebhookSubscription['attributes'],
  ): Promise<WebhookSubscriptionSecretJson> {
    const secret = this.secrets.generate();
    const sealed = this.secrets.seal(id, secret);
    const { enabled } = attributes;
    const activeFrom = enabled ? formatPosition(await this.eventStore.head()) : null;
    const now = new Date();
    const subscription: WebhookSubscription = {
      id,
      accountId: context.accountId,
      ...attributes,
      disabledAt: enabled ? null : now,
      disabledReason: enabled ? null : 'disabled_by_user',
      lastDeliveryAt: null,
      lastDeliveryStatus: null,
      lastDeliveryError: null,
      createdAt: now,
      updatedAt: now,
    };
    return this.writes.write(context, async (transaction) => {
      const inserted = await this.table.insert(
        transaction.manager,
        subscription,
        sealed,
        activeFrom,
        this.config.limits.webhookSubscriptions,
      );
      if (!inserted && !transaction.isRepeated) throw new IdTakenError(TABLE, id);
      if (inserted) {
        const settings = toAuditedSettings(subscription);
        await audit(transaction, context, id, 'webhook_subscription.created', settings);
      }
      return toWebhookSubscriptionSecretJson(subscription, secret);
    });
  }
}

export class UpdateWebhookSubscription extends Command<WebhookSubscriptionJson> {
  constructor(
    readonly context: CommandContext,
    readonly id: number,
    readonly changes: SubscriptionChanges,
  ) {
    super();
  }
}

@CommandHandler(UpdateWebhookSubscription)
export class UpdateWebhookSubscriptionHandler implements ICommandHandler<UpdateWebhookSubscription> {
  constructor(
    private readonly writes: AuditedWrites,
    private readonly table: WebhookSubscriptionTable,
    private readonly requests: DeliveryRequests,
    private readonly eventStore: EventStore,
    private readonly names: NameLookup,
    private readonly config: Config,
  ) {}

  async execute({
    context,
    id,
    changes,
  }: UpdateWebhookSubscription): Promise<WebhookSubscriptionJson> {
    const { targetUrl, enabled } = changes;
    if (targetUrl !== undefined) {
      await this.table.get(context.accountId, id);
      await assertTarget(targetUrl, this.names, this.config);
    }
    const head = enabled === undefined ? null : formatPosition(await this.eventStore.head());
    const now = new Date();
    const response = await this.writes.write(context, async (transaction) => {
      const { manager } = transaction;
      const current = await this.table.lock(manager, context.accountId, id);
      const changed = changeSubscription(current, changes, now);
      if (!changed) return toWebhookSubscriptionJson(current);
      const { subscription, switchedTo } = changed;
      await this.table.update(manager, subscription);
      if (switchedTo === 'on') {
        const before = getGiveUpBefore(now, this.config.webhookTimeScale);
        await this.table.resume(manager, id, head, before);
      } else if (switchedTo === 'off' && head !== null)
        await this.requests.pause(manager, id, head);
      await audit(transaction, context, id, AUDIT_TYPES[switchedTo ?? 'changed'], {
        changes: toAuditedChanges(current, subscription),
      });
      return toWebhookSubscriptionJson(subscription);
    });
    await this.requests.announceChange(id);
    return response;
  }
}

const AUDIT_TYPES = {
  on: 'webhook_subscription.enabled',
  off: 'webhook_subscription.disabled',
  changed: 'webhook_subscription.updated',
};

export class RotateWebhookSecret extends Command<WebhookSubscriptionSecretJson> {
  constructor(
    readonly context: CommandContext,
    readonly id: number,
    /** How long the old secret signs beside the new one. */
    readonly graceSeconds: number,
  ) {
    super();
  }
}

@CommandHandler(RotateWebhookSecret)
export class RotateWebhookSecretHandler implements ICommandHandler<RotateWebhookSecret> {
  constructor(
    private readonly writes: AuditedWrites,
    private readonly table: WebhookSubscriptionTable,
    private readonly requests: DeliveryRequests,
    private readonly secrets: WebhookSecrets,
  ) {}

  async execute({
    context,
    id,
    graceSeconds,
  }: RotateWebhookSecret): Promise<WebhookSubscriptionSecretJson> {
    const secret = this.secrets.generate();
    const sealed = this.secrets.seal(id, secret);
    const now = new Date();
    const until = graceSeconds === 0 ? null : new Date(now.getTime() + graceSeconds * 1000);
    const response = await this.writes.write(context, async (transaction) => {
      const { manager, isRepeated } = transaction;
      const current = await this.table.lock(manager, context.accountId, id);
      const rotated = { ...current, updatedAt: now };
      if (!isRepeated || !(await this.table.hasSecret(manager, id, sealed))) {
        await this.table.rotate(manager, rotated, sealed, until);
        const seconds = { grace_seconds: graceSeconds };
        await audit(transaction, context, id, 'webhook_subscription.secret_rotated', seconds);
      }
      return toWebhookSubscriptionSecretJson(rotated, secret);
    });
    await this.requests.announceChange(id);
    return response;
  }
}

export class DeleteWebhookSubscription extends Command<void> {
  constructor(
    readonly context: CommandContext,
    readonly id: number,
  ) {
    super();
  }
}

@CommandHandler(DeleteWebhookSubscription)
export class DeleteWebhookSubscriptionHandler implements ICommandHandler<DeleteWebhookSubscription> {
  constructor(
    private readonly writes: AuditedWrites,
    private readonly table: WebhookSubscriptionTable,
    private readonly requests: DeliveryRequests,
  ) {}

  async execute({ context, id }: DeleteWebhookSubscription): Promise<void> {
    await this.writes.write(context, async (transaction) => {
      const former = await this.table.remove(transaction.manager, context.accountId, id);
      if (former) {
        const settings = toAuditedSettings(former);
        await audit(transaction, context, id, 'webhook_subscription.deleted', settings);
      } else if (!transaction.isRepeated) throw new NotFoundError('Webhook subscription');
    });
    await this.requests.announceChange(id);
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
  private readonly sending = new Batcher<Attempt, AttemptResult>(MAX_TESTS, 1, (attempts) =>
    Promise.allSettled(attempts.map((attempt) => this.client.send(attempt))),
  );
  private readonly runningTests = new Map<number, number>();

  constructor(
    private readonly repeated: RepeatedAudits,
    private readonly table: WebhookSubscriptionTable,
    private readonly client: WebhookClient,
    private readonly secrets: WebhookSecrets,
  ) {}

  async execute({ context, id }: TestWebhookSubscription): Promise<WebhookTestJson> {
    const { accountId } = context;
    const row = await this.table.get(accountId, id);
    const eventId = toPublicEventId(createId());
    const attempt = {
      url: row.target_url,
      ...this.openSecrets(row),
      eventId,
      type: TEST_EVENT,
      body: formatBody(
        Buffer.from(renderTestEnvelope(eventId, row, new Date())),
        row.payload_format,
      ),
    };
    const { outcome, at } = await this.limitTests(accountId, async () => {
      const { target_url } = toAuditedSettings(toSubscription(row));
      await this.record(context, id, { event_id: eventId, target_url });
      return this.sending.add(attempt);
    });
    const status = getHttpStatus(outcome);
    const error = getError(outcome);
    // The test was sent, so failing to store its result is no reason to report an error.
    await this.table.saveResult(id, { at, status, error }).catch((storeError: unknown) =>
      this.log.warn(`the result of a test could not be stored: ${getErrorMessage(storeError)}`, {
        subscription_id: id,
      }),
    );
    return toWebhookTestJson(eventId, status, error);
  }

  /** Audits a test before it is sent. Its result depends on the receiver, so no response is stored for the request. */
  private async record(context: CommandContext, id: number, what: object): Promise<void> {
    const { keyed: _, ...by } = context;
    const { actor, ipAddress } = by;
    const kind = ['webhook test', id, actor.type, actor.id, getAddressKey(ipAddress)];
    await this.repeated.write(by, kind, (transaction, times) =>
      audit(transaction, by, id, 'webhook_subscription.tested', { ...what, times }),
    );
  }

  private openSecrets(row: WebhookSubscriptionRow): Pick<Attempt, 'secret' | 'previousSecret'> {
    const { id, secret, previous_secret: previous, previous_secret_until: until } = row;
    const isStillSigning = previous !== null && until !== null && until > new Date();
    const opened = this.secrets.open(id, secret);
    if (opened === null) throw new RejectedError({ base: [SECRET_LOST] });
    const previousSecret = isStillSigning ? this.secrets.open(id, previous) : null;
    return { secret: opened, ...(previousSecret !== null && { previousSecret }) };
  }

  /** Limits concurrent tests of a store. @throws UnavailableError when there are too many: nothing was sent */
  private async limitTests(
    accountId: number,
    send: () => Promise<AttemptResult>,
  ): Promise<AttemptResult> {
    const runningCount = this.runningTests.get(accountId) ?? 0;
    if (runningCount >= MAX_TESTS_PER_STORE) {
      throw new UnavailableError('Other tests of this store are still running');
    }
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

export const webhookSubscriptionHandlers = [
  CreateWebhookSubscriptionHandler,
  UpdateWebhookSubscriptionHandler,
  RotateWebhookSecretHandler,
  TestWebhookSubscriptionHandler,
  DeleteWebhookSubscriptionHandler,
];

async function audit(
  transaction: AuditedTransaction,
  { accountId }: CommandContext,
  id: number,
  type: string,
  details: object,
): Promise<void> {
  const subject = { webhook_subscription_id: id, ...details };
  await transaction.audit({ accountIds: [accountId], type, subject });
}

/**
 * Refuses a URL that the settings forbid, and a name that leads only into our own network (HOOK-21).
 * @throws InvalidFieldsError, RejectedError
 */
async function assertTarget(targetUrl: string, names: NameLookup, config: Config): Promise<void> {
  const error = findTargetUrlError(targetUrl, config);
  if (error !== undefined) throw new InvalidFieldsError({ target_url: [error] });
  const { hostname } = new URL(targetUrl);
  if (parseLiteralAddress(hostname) !== undefined) return;
  const addresses = await names.resolveWithin(hostname, NAME_LOOKUP_MS);
  if (addresses.length === 0) return;
  if (addresses.every((address) => isBlockedAddress(address, config))) {
    throw new RejectedError({ target_url: [NOT_PUBLIC] });
  }
}
