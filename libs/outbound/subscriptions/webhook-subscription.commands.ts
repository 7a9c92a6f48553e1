import { Command, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import { Pool } from 'pg';
import type { EntityManager } from 'typeorm';
import { getNow } from '#platform/kernel/clock.js';
import type { CommandContext } from '#platform/kernel/aggregate.js';
import { Config } from '#configuration/config.js';
import { InvalidFieldsError, NotFoundError, RejectedError } from '#platform/kernel/errors.js';
import { createId } from '#platform/kernel/randomness.js';
import { IdTakenError, withNewId } from '#platform/database/ids.js';
import { EventStore, type Position } from '#platform/event-store/port/event-store.js';
import {
  AuditedWrites,
  type AuditedTransaction,
} from '#platform/event-store/commands/audited-writes.service.js';
import { formatPosition } from '#platform/event-store/port/position.js';
import { DeliveryRequests } from './delivery-requests.service.js';
import type { SubjectFilter } from '#outbound/public-events/event-subject.js';
import { EventSubjects } from '#outbound/public-events/event-subjects.service.js';
import { PUBLIC_EVENTS } from '#outbound/public-events/public-events.js';
import { NameLookup } from '#outbound/sending/name-lookup.client.js';
import {
  isBlockedAddress,
  parseLiteralAddress,
  findTargetUrlIssue,
} from '#outbound/sending/target-address.js';
import { getGiveUpBefore } from './webhook-delivery.js';
import type { SignatureKind } from '#outbound/sending/webhook-signature.js';
import { WebhookSecrets } from '#outbound/sending/webhook-secrets.service.js';
import {
  toWebhookSubscriptionJson,
  toWebhookSubscriptionSecretJson,
  type WebhookSubscriptionJson,
  type WebhookSubscriptionSecretJson,
} from './webhook-subscription.dto.js';
import { toSubscription, type WebhookSubscriptionRow } from './webhook-subscription.entity.js';
import {
  toAuditedChanges,
  toAuditedSettings,
  changeSubscription,
  findGap,
  isSubscribedTo,
} from './webhook-subscription.js';
import type {
  SubscriptionAttributes,
  SubscriptionChanges,
  WebhookSubscription,
} from './webhook-subscription.js';
import { WebhookSubscriptionTable } from './webhook-subscription-table.service.js';
import { TestWebhookSubscriptionHandler } from './webhook-test.commands.js';
import type { Issue } from '#platform/kernel/issues.js';
import { ISSUES } from '#translations/issues.js';

const TABLE = 'webhook_subscriptions';
const NAME_LOOKUP_MS = 1_000;

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
    private readonly subjects: EventSubjects,
  ) {}

  async execute({
    context,
    attributes,
  }: CreateWebhookSubscription): Promise<WebhookSubscriptionSecretJson> {
    await assertTarget(attributes.targetUrl, this.names, this.config);
    await assertOwnSubjects(context.accountId, attributes, this.subjects);
    // The id is allocated before the insert, because the secret is sealed to it.
    return withNewId(this.pool, TABLE, (id) => this.create(id, context, attributes));
  }

  private async create(
    id: number,
    context: CreateWebhookSubscription['context'],
    attributes: CreateWebhookSubscription['attributes'],
  ): Promise<WebhookSubscriptionSecretJson> {
    const { enabled, headers, signature } = attributes;
    const { secret, publicKey } = this.secrets.generate(signature);
    const sealed = {
      secret: this.secrets.seal(id, secret),
      headers: this.secrets.sealHeaders(id, headers),
    };
    const activeFrom = enabled ? formatPosition(await this.eventStore.head()) : null;
    const now = getNow();
    const subscription: WebhookSubscription = {
      id,
      accountId: context.accountId,
      ...attributes,
      publicKey,
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
        this.config.quotas.webhook_subscriptions,
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
    /** Whether a resume also sends what was recorded since the subscription was disabled. */
    readonly replayMissed: boolean,
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
    private readonly secrets: WebhookSecrets,
    private readonly subjects: EventSubjects,
    private readonly config: Config,
  ) {}

  async execute({
    context,
    id,
    changes,
    replayMissed,
  }: UpdateWebhookSubscription): Promise<WebhookSubscriptionJson> {
    const { targetUrl, enabled } = changes;
    if (targetUrl !== undefined) {
      await this.table.get(context.accountId, id);
      await assertTarget(targetUrl, this.names, this.config);
    }
    await assertOwnSubjects(context.accountId, changes, this.subjects);
    const head = enabled === undefined ? null : await this.eventStore.head();
    const now = getNow();
    const request = createId();
    const response = await this.writes.write(context, async (transaction) => {
      const { manager } = transaction;
      const current = this.openHeaders(await this.table.lock(manager, context.accountId, id));
      const changed = changeSubscription(current, changes, now);
      if (!changed) return toWebhookSubscriptionJson(current);
      const { subscription, switchedTo } = changed;
      const replaysGap = replayMissed && switchedTo === 'on';
      await this.table.update(
        manager,
        subscription,
        changes.headers && this.secrets.sealHeaders(id, subscription.headers),
      );
      if (switchedTo === 'on' && head !== null) {
        const before = getGiveUpBefore(now, this.config.webhookTimeScale);
        await this.table.resume(manager, id, formatPosition(head), before);
        if (replaysGap) await this.replayGap(manager, current, subscription, head, request);
      } else if (switchedTo === 'off' && head !== null)
        await this.requests.pause(manager, id, formatPosition(head));
      await audit(transaction, context, id, AUDIT_TYPES[switchedTo ?? 'changed'], {
        changes: toAuditedChanges(current, subscription),
        ...(replaysGap && { replay_missed: true }),
      });
      return toWebhookSubscriptionJson(subscription);
    });
    await this.requests.announceChange(id);
    return response;
  }

  private async replayGap(
    manager: EntityManager,
    before: WebhookSubscription,
    { id, accountId, events, updatedAt }: WebhookSubscription,
    head: Position,
    request: string,
  ): Promise<void> {
    const types = PUBLIC_EVENTS.filter((type) => isSubscribedTo(events, type));
    const gap = findGap(before, updatedAt);
    const replay = { subscriptionId: id, accountId, ...gap, types, head, fillsGap: true };
    await this.requests.replay(manager, replay, request);
  }

  /** Returns the subscription with the values of its headers, if they can be decrypted. */
  private openHeaders(row: WebhookSubscriptionRow): WebhookSubscription {
    const subscription = toSubscription(row);
    const headers = this.secrets.openHeaders(row.id, row.headers) ?? subscription.headers;
    return { ...subscription, headers };
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
    /** Null: as before. */
    readonly signature: SignatureKind | null,
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
    signature,
  }: RotateWebhookSecret): Promise<WebhookSubscriptionSecretJson> {
    const kind = signature ?? (await this.table.get(context.accountId, id)).signature;
    const { secret, publicKey } = this.secrets.generate(kind);
    const sealed = this.secrets.seal(id, secret);
    const now = getNow();
    const until = graceSeconds === 0 ? null : new Date(now.getTime() + graceSeconds * 1000);
    const response = await this.writes.write(context, async (transaction) => {
      const { manager, isRepeated } = transaction;
      const current = toSubscription(await this.table.lock(manager, context.accountId, id));
      const rotated = { ...current, signature: kind, publicKey, updatedAt: now };
      if (!isRepeated || !(await this.table.hasSecret(manager, id, sealed))) {
        await this.table.rotate(manager, rotated, sealed, until);
        await audit(transaction, context, id, 'webhook_subscription.secret_rotated', {
          grace_seconds: graceSeconds,
          ...(current.signature !== kind && { signature: kind }),
        });
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

const OWN_NETWORK =
  'Take an address that the internet can reach, or have the operator allow the network of the receiver with WEBHOOK_ALLOWED_CIDRS.';

/**
 * Refuses a URL that the settings forbid, and a name that leads only into our own network (HOOK-21).
 * @throws InvalidFieldsError, RejectedError
 */
async function assertTarget(targetUrl: string, names: NameLookup, config: Config): Promise<void> {
  const error = findTargetUrlIssue(targetUrl, config);
  if (error !== undefined) {
    const advice = error.code === ISSUES.url_not_public.code ? OWN_NETWORK : undefined;
    throw new InvalidFieldsError({ target_url: [error] }, 'validation_failed', advice);
  }
  const { hostname } = new URL(targetUrl);
  if (parseLiteralAddress(hostname) !== undefined) return;
  const addresses = await names.resolveWithin(hostname, NAME_LOOKUP_MS);
  if (addresses.length === 0) return;
  if (addresses.every((address) => isBlockedAddress(address, config))) {
    throw new RejectedError(
      { target_url: [ISSUES.url_not_public] },
      'validation_failed',
      OWN_NETWORK,
    );
  }
}

/** Refuses cards and locations of others. @throws RejectedError */
async function assertOwnSubjects(
  accountId: number,
  { cardIds = null, locationIds = null }: Partial<SubjectFilter>,
  subjects: EventSubjects,
): Promise<void> {
  const foreign = await subjects.findForeign(accountId, { cardIds, locationIds });
  const toErrors = (ids: number[] | null) => ids?.map((id) => ISSUES.foreign_record({ id }));
  const errors = {
    card_ids: toErrors(foreign.cardIds),
    location_ids: toErrors(foreign.locationIds),
  };
  const present = Object.entries(errors).flatMap(([field, issues]): [string, Issue[]][] =>
    issues && issues.length > 0 ? [[field, issues]] : [],
  );
  if (present.length > 0) throw new RejectedError(Object.fromEntries(present));
}
