import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { getNow } from '#platform/kernel/clock.js';
import type { CommandContext } from '#platform/kernel/aggregate.js';
import { NotFoundError, RejectedError } from '#platform/kernel/errors.js';
import { createId } from '#platform/kernel/randomness.js';
import { query } from '#platform/database/connection.js';
import { EventStore } from '#platform/event-store/port/event-store.js';
import { PersonalKeys } from '#platform/event-store/personal-keys/personal-keys.js';
import { AuditedWrites } from '#platform/event-store/commands/audited-writes.service.js';
import { RepeatedAudits } from '#platform/event-store/commands/repeated-audits.service.js';
import type { PageRange } from '#platform/http/page.js';
import { getAddressKey } from '#platform/http/rate-limit.js';
import {
  DELIVERY_COLUMNS,
  toDeliveryDetailJson,
  toDeliveryJson,
  type AttemptRow,
  type DeliveryDetailJson,
  type DeliveryFilter,
  type DeliveryJson,
  type DeliveryRow,
  type ReplayJson,
} from './webhook-delivery.dto.js';
import { DeliveryRequests, ReplayRunningError } from './delivery-requests.service.js';
import { getExcerptContext } from './webhook-delivery.js';
import { WebhookSubscriptionTable } from './webhook-subscription-table.service.js';
import { toSubscription, type WebhookSubscriptionRow } from './webhook-subscription.entity.js';
import { isSubscribedTo } from './webhook-subscription.js';
import { PUBLIC_EVENTS, type PublicEventType } from '#outbound/public-events/public-events.js';
import { ISSUES } from '#translations/issues.js';

type SealedAttempt = Omit<AttemptRow, 'status'> & {
  response_status: number | null;
  response_excerpt: Buffer | null;
};

/** A delivery joined with one of its attempts, or with none. */
type DetailRow = DeliveryRow & (SealedAttempt | { attempt: null });

/** Shows the deliveries of a subscription, and sends them again. */
@Injectable()
export class WebhookDeliveriesService {
  constructor(
    private readonly pool: Pool,
    private readonly subscriptions: WebhookSubscriptionTable,
    private readonly keys: PersonalKeys,
    private readonly requests: DeliveryRequests,
    private readonly writes: AuditedWrites,
    private readonly repeated: RepeatedAudits,
    private readonly eventStore: EventStore,
  ) {}

  /** Lists deliveries, newest first. The caller has made sure that the subscription exists. */
  async list(
    subscriptionId: number,
    { status, type, from, to }: DeliveryFilter,
    { after, limit }: PageRange,
  ): Promise<DeliveryJson[]> {
    const values: unknown[] = [subscriptionId];
    const addValue = (value: unknown) => `$${values.push(value)}`;
    // The query contains only the conditions of the request, and the status as a literal, so that the planner reads one
    // half of the view and as few daily partitions as possible.
    const conditions = ['subscription_id = $1'];
    if (status !== null) conditions.push(`status = '${status}'`);
    if (type !== null) conditions.push(`type = ${addValue(type)}`);
    if (from !== null) {
      const time = addValue(from);
      // The id contains the day on which enqueuing began, which may be the day before.
      conditions.push(
        `created_at >= ${time} and id >= webhook_first_id(${time}::timestamptz - interval '1 hour')`,
      );
    }
    if (to !== null) {
      const time = addValue(to);
      conditions.push(
        `created_at < ${time} and id < webhook_first_id(${time}::timestamptz) + (1::bigint << 37)`,
      );
    }
    if (after !== null) conditions.push(`id < ${addValue(after[0])}`);
    const rows = await query<DeliveryRow>(this.pool, {
      text: `select ${DELIVERY_COLUMNS} from webhook_deliveries where ${conditions.join(' and ')}
             order by id desc ${limit === null ? '' : `limit ${addValue(limit)}`}`,
      values,
    });
    return rows.map(toDeliveryJson);
  }

  /** Finds a delivery with its attempts. @throws NotFoundError */
  async get(accountId: number, subscriptionId: number, id: number): Promise<DeliveryDetailJson> {
    await this.subscriptions.get(accountId, subscriptionId);
    return (await this.loadDetail(subscriptionId, id)).delivery;
  }

  /** Asserts that a subscription exists. @throws NotFoundError */
  async assertExists(accountId: number, subscriptionId: number): Promise<void> {
    await this.subscriptions.get(accountId, subscriptionId);
  }

  /**
   * Requests one more attempt at once.
   * @throws NotFoundError; RejectedError while the subscription is disabled, and when the event is no longer kept
   */
  async redeliver(
    context: CommandContext,
    subscriptionId: number,
    id: number,
  ): Promise<DeliveryDetailJson> {
    const { accountId } = context;
    const subscription = await this.subscriptions.get(accountId, subscriptionId);
    const { delivery, customerId } = await this.loadDetail(subscriptionId, id);
    assertEnabled(subscription);
    if (!(await this.requests.canBeSent(subscriptionId, id))) {
      throw new RejectedError(
        { base: [ISSUES.event_not_kept] },
        'validation_failed',
        'Read what became of it from the record itself: events are sent again only while they are kept.',
      );
    }
    // Responses of receivers may be personal data, which an erasure removes.
    const echoed = delivery.attempts.some(({ response_excerpt }) => response_excerpt !== null);
    if (context.keyed && echoed) context.keyed.subjectId = customerId;
    await this.writes.write(context, async (transaction) => {
      await this.requests.redeliver(transaction.manager, subscriptionId, id);
      await this.repeated.writeWithin(
        transaction,
        createRepetitionKind('redelivery', context, subscriptionId),
        (_, times) =>
          transaction.audit({
            accountIds: [accountId],
            type: 'webhook_delivery.redelivered',
            subject: {
              webhook_subscription_id: subscriptionId,
              webhook_delivery_id: id,
              times,
            },
          }),
      );
      return delivery;
    });
    await this.requests.announce(subscriptionId);
    return delivery;
  }

  /**
   * Sends the events of a past period to the subscription again.
   * @throws NotFoundError; RejectedError while it is disabled or another replay of it is open
   */
  async replay(
    context: CommandContext,
    subscriptionId: number,
    { from, to, types }: { from: Date; to: Date | null; types: PublicEventType[] | null },
  ): Promise<ReplayJson> {
    const { accountId } = context;
    const subscription = await this.subscriptions.get(accountId, subscriptionId);
    assertEnabled(subscription);
    const replayedTypes = (types ?? PUBLIC_EVENTS).filter((type) =>
      isSubscribedTo(subscription.events, type),
    );
    if (replayedTypes.length === 0) return { matched: 0 };
    const replay = {
      subscriptionId,
      accountId,
      from,
      to: to ?? getNow(),
      types: replayedTypes.length === PUBLIC_EVENTS.length ? null : replayedTypes,
      head: await this.eventStore.head(),
      fillsGap: false,
    };
    const request = createId();
    const { cardIds, locationIds } = toSubscription(subscription);
    const matched = await this.requests.countMatching({ ...replay, cardIds, locationIds });
    return this.writes.write(context, async (transaction) => {
      const { manager } = transaction;
      await this.subscriptions.lock(manager, accountId, subscriptionId);
      if (matched > 0 && !(await this.requests.replay(manager, replay, request))) {
        throw new ReplayRunningError();
      }
      await this.repeated.writeWithin(
        transaction,
        createRepetitionKind('replay', context, subscriptionId),
        (_, times) =>
          transaction.audit({
            accountIds: [accountId],
            type: 'webhook_subscription.replayed',
            subject: {
              webhook_subscription_id: subscriptionId,
              from,
              to: replay.to,
              matched,
              times,
            },
          }),
      );
      return { matched };
    });
  }

  private async loadDetail(
    subscriptionId: number,
    id: number,
  ): Promise<{ delivery: DeliveryDetailJson; customerId: number }> {
    // One statement reads one snapshot, so no attempt is shown next to the state that the delivery had before it.
    const rows = await query<DetailRow>(this.pool, {
      text: `select d.*, a.attempt, a.kind, a.at, a.status as response_status, a.duration_ms, a.error,
               a.response_excerpt
             from (select ${DELIVERY_COLUMNS} from webhook_deliveries
                   where subscription_id = $1 and id = $2) d
             left join webhook_attempts a on a.subscription_id = $1 and a.delivery_id = $2
             order by a.attempt`,
      values: [subscriptionId, id],
    });
    const [row] = rows;
    if (!row) throw new NotFoundError('Delivery');
    const attempts = rows.filter(isAttempted).map(async (attemptRow) => ({
      row: { ...attemptRow, status: attemptRow.response_status },
      excerpt: await this.openExcerpt(row, attemptRow),
    }));
    const delivery = toDeliveryDetailJson(row, await Promise.all(attempts));
    return { delivery, customerId: row.customer_id };
  }

  /** Decrypts an excerpt. It is also null for an erased customer, because receivers may echo personal data. */
  private async openExcerpt(
    { id, customer_id }: DeliveryRow,
    { response_excerpt: sealed }: SealedAttempt,
  ): Promise<string | null> {
    if (sealed === null) return null;
    return (await this.keys.openText(customer_id, sealed, getExcerptContext(id))) ?? null;
  }
}

/** Creates the key by which repeated audit entries are grouped. */
function createRepetitionKind(
  action: string,
  { actor, ipAddress }: CommandContext,
  subscriptionId: number,
): (string | number)[] {
  return [`webhook ${action}`, subscriptionId, actor.type, actor.id, getAddressKey(ipAddress)];
}

function isAttempted(row: DetailRow): row is DeliveryRow & SealedAttempt {
  return row.attempt !== null;
}

function assertEnabled({ enabled }: WebhookSubscriptionRow): void {
  if (enabled) return;
  throw new RejectedError(
    { base: [ISSUES.subscription_disabled] },
    'validation_failed',
    'Enable it first: PATCH the subscription with {"enabled": true}. It also gets what happened meanwhile, unless "replay_missed" is false.',
  );
}
