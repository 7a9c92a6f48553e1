import { Inject } from '@nestjs/common';
import { Command, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import { randomBytes } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { DataSource } from 'typeorm';
import type { CommandContext } from '#kernel/aggregate.js';
import type { Config } from '#kernel/config.js';
import { NotFoundError, RejectedError, UnknownOutcomeError } from '#kernel/errors.js';
import { deriveKey } from '#kernel/sealing.js';
import { isConnectionLoss } from '#database/connection.js';
import { poolOf } from '#database/data-source.js';
import { CONFIG } from '#database/database.module.js';
import { nextId } from '#database/ids.js';
import { EventStore } from '#event-store/event-store.js';
import { formatPosition } from '#event-store/position.js';
import { NameLookup } from './name-lookup.client.js';
import { isBlockedAddress, literalAddress, NOT_PUBLIC } from './target-address.js';
import { SECRET_BYTES, SECRETS, sealSecret, signingSecret } from './webhook-secret.js';
import {
  SUBSCRIPTION_COLUMNS,
  subscriptionOf,
  type WebhookSubscriptionRow,
} from './webhook-subscription.entity.js';
import type { SubscriptionAttributes, WebhookSubscription } from './webhook-subscription.js';

const NAME_LOOKUP_MS = 1_000;
const SETTLE_WITHIN_MS = 30_000;
const SETTLE_EVERY_MS = 250;

/** The audit entry is part of the statement, so that neither is ever there without the other. */
const CREATE = `
  with made as (
    insert into webhook_subscriptions (id, account_id, events, target_url, description, payload_format,
      secret, enabled, disabled_at, disabled_reason, active_from, created_at, updated_at)
    values ($1, $2, $3, $4, $5, $6, $7, $8, case when $8 then null else $10::timestamptz end,
      case when $8 then null else 'disabled_by_user' end, $9, $10, $10)
    on conflict (id) do nothing
    returning ${SUBSCRIPTION_COLUMNS}
  ), noted as (
    insert into audit_log (account_id, type, actor, channel, request_id, subject, recorded_at)
    select account_id, 'webhook_subscription.created', $11, $12, $13,
      jsonb_build_object('webhook_subscription_id', id), $10
    from made
  )
  select * from made
  union all select ${SUBSCRIPTION_COLUMNS} from webhook_subscriptions where id = $1`;

const DELETE = `
  with gone as (
    delete from webhook_subscriptions where id = $1 and account_id = $2 returning id, account_id
  ), noted as (
    insert into audit_log (account_id, type, actor, channel, request_id, subject, recorded_at)
    select account_id, 'webhook_subscription.deleted', $3, $4, $5,
      jsonb_build_object('webhook_subscription_id', id), now()
    from gone
  )
  select id from gone`;

export class CreateWebhookSubscription extends Command<{
  subscription: WebhookSubscription;
  secret: string;
}> {
  constructor(
    readonly context: CommandContext,
    readonly attributes: SubscriptionAttributes,
  ) {
    super();
  }
}

@CommandHandler(CreateWebhookSubscription)
export class CreateWebhookSubscriptionHandler implements ICommandHandler<CreateWebhookSubscription> {
  private readonly secretKey: Buffer;

  constructor(
    private readonly source: DataSource,
    private readonly events: EventStore,
    private readonly names: NameLookup,
    @Inject(CONFIG) private readonly config: Config,
  ) {
    this.secretKey = deriveKey(config.masterKey, SECRETS);
  }

  async execute({ context, attributes }: CreateWebhookSubscription): Promise<{
    subscription: WebhookSubscription;
    secret: string;
  }> {
    await this.refuseUnreachable(attributes.targetUrl);
    // Taken before the insert, because the sealed secret names the subscription that it belongs to.
    const id = await nextId(this.source, 'webhook_subscriptions_id');
    const secret = signingSecret(randomBytes(SECRET_BYTES));
    const values = [
      id,
      context.accountId,
      attributes.events,
      attributes.targetUrl,
      attributes.description,
      attributes.payloadFormat,
      sealSecret(this.secretKey, id, secret),
      attributes.enabled,
      attributes.enabled ? formatPosition(await this.events.head()) : null,
      new Date(),
      JSON.stringify(context.actor),
      context.channel,
      context.requestId,
    ];
    const row = await settled(async () => {
      const { rows } = await poolOf(this.source).query<WebhookSubscriptionRow>(CREATE, values);
      return rows[0];
    });
    if (!row) throw new Error(`webhook subscription ${id} was neither made nor found`);
    return { subscription: subscriptionOf(row), secret };
  }

  /** A name that leads nowhere but into our own network (contract section 9). */
  private async refuseUnreachable(targetUrl: string): Promise<void> {
    const { hostname } = new URL(targetUrl);
    if (literalAddress(hostname) !== undefined) return;
    const found = await this.names.addressesWithin(hostname, NAME_LOOKUP_MS);
    if (found.length === 0) return;
    if (found.every((address) => isBlockedAddress(address, this.config))) {
      throw new RejectedError({ target_url: [NOT_PUBLIC] });
    }
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
  constructor(private readonly source: DataSource) {}

  async execute({ context, id }: DeleteWebhookSubscription): Promise<void> {
    const { accountId, actor, channel, requestId } = context;
    await settled(async (repeated) => {
      const { rowCount } = await poolOf(this.source).query(DELETE, [
        id,
        accountId,
        JSON.stringify(actor),
        channel,
        requestId,
      ]);
      if (rowCount === 0 && !repeated) throw new NotFoundError('Webhook subscription');
    });
  }
}

export const webhookSubscriptionHandlers = [
  CreateWebhookSubscriptionHandler,
  DeleteWebhookSubscriptionHandler,
];

/**
 * A connection lost on the way leaves open whether the statement took effect. Both statements end the
 * same when run again, so that settles it.
 * @throws UnknownOutcomeError when the database stays away
 */
async function settled<T>(statement: (repeated: boolean) => Promise<T>): Promise<T> {
  const deadline = Date.now() + SETTLE_WITHIN_MS;
  for (let repeated = false; ; repeated = true) {
    try {
      return await statement(repeated);
    } catch (error) {
      if (!isConnectionLoss(error)) throw error;
      if (Date.now() > deadline) {
        throw new UnknownOutcomeError('the outcome of a write stays unknown', { cause: error });
      }
      await wait(SETTLE_EVERY_MS);
    }
  }
}
