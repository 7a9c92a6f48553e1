import { Body, Controller, Get, Param, Post, Query } from '@nestjs/common';
import type { CommandContext } from '#platform/kernel/aggregate.js';
import { Context } from '#platform/http/caller.js';
import { DeclaresTag, Endpoint } from '#platform/http/endpoint.js';
import { Paged, PageReader } from '#platform/http/page.js';
import { parsePathId } from '#platform/http/path.js';
import { createRecordLookup } from '#platform/http/record.js';
import { WebhookDeliveriesService } from './webhook-deliveries.service.js';
import {
  DELIVERIES_SHOWN,
  DeliveryDetailJson,
  DeliveryJson,
  DeliveryListQuery,
  ReplayDto,
  ReplayJson,
} from './webhook-delivery.dto.js';

const TAG = 'Webhook deliveries';

const SUBSCRIPTION = createRecordLookup(
  WebhookDeliveriesService,
  (deliveries, accountId, { id = '', subscription_id = id }) =>
    deliveries.assertExists(accountId, parsePathId(subscription_id)),
);

const DELIVERY = createRecordLookup(
  WebhookDeliveriesService,
  (deliveries, accountId, { subscription_id = '', id = '' }) =>
    deliveries.get(accountId, parsePathId(subscription_id), parsePathId(id)),
);

@DeclaresTag({
  name: 'Webhook deliveries',
  order: 100,
  description: 'Deliveries that were or will be sent to a subscription, and sending them again.',
})
@Controller('/api/v1/accounts/:account_id/webhook_subscriptions')
export class WebhookDeliveriesController {
  constructor(private readonly deliveries: WebhookDeliveriesService) {}

  @Get(':subscription_id/deliveries')
  @Endpoint({
    id: 'listWebhookDeliveries',
    readsMuch: true,
    tag: TAG,
    summary: 'List deliveries',
    description: 'Deliveries that were or will be sent to a subscription, newest first.',
    path: ['account_id', 'subscription_id'],
    status: 200,
    response: [DeliveryJson],
    errors: [404, 422],
    record: SUBSCRIPTION,
  })
  async list(
    @Context() { accountId }: CommandContext,
    @Param('subscription_id') subscriptionId: string,
    @Query() { limit, cursor, ...filter }: DeliveryListQuery,
    @Paged() pages: PageReader,
  ): Promise<DeliveryJson[]> {
    const id = parsePathId(subscriptionId);
    await this.deliveries.assertExists(accountId, id);
    return pages.getPage(
      { limit: limit ?? DELIVERIES_SHOWN, cursor },
      (range) => this.deliveries.list(id, filter, range),
      (delivery) => [delivery.id],
    );
  }

  @Get(':subscription_id/deliveries/:id')
  @Endpoint({
    id: 'getWebhookDelivery',
    tag: TAG,
    summary: 'Show a delivery',
    description: 'One delivery with all its attempts.',
    path: ['account_id', 'subscription_id', 'id'],
    status: 200,
    response: DeliveryDetailJson,
    errors: [404],
    record: DELIVERY,
  })
  show(
    @Context() { accountId }: CommandContext,
    @Param('subscription_id') subscriptionId: string,
    @Param('id') id: string,
  ): Promise<DeliveryDetailJson> {
    return this.deliveries.get(accountId, parsePathId(subscriptionId), parsePathId(id));
  }

  @Post(':subscription_id/deliveries/:id/redeliver')
  @Endpoint({
    id: 'redeliverWebhook',
    tag: TAG,
    summary: 'Send a delivery again',
    description:
      'At once, with the same webhook-id and body. The attempt is listed with the delivery as soon as it has ended.',
    path: ['account_id', 'subscription_id', 'id'],
    status: 200,
    response: DeliveryDetailJson,
    errors: [404, 422],
    record: DELIVERY,
  })
  redeliver(
    @Context() context: CommandContext,
    @Param('subscription_id') subscriptionId: string,
    @Param('id') id: string,
  ): Promise<DeliveryDetailJson> {
    return this.deliveries.redeliver(context, parsePathId(subscriptionId), parsePathId(id));
  }

  @Post(':id/replay')
  @Endpoint({
    id: 'replayWebhooks',
    tag: TAG,
    summary: 'Send the events of a period again',
    description:
      'Including events from while the subscription was disabled and from before it was created, as long as they are kept. They keep their ids, so that receivers can drop duplicates.',
    path: ['account_id', 'id'],
    status: 200,
    response: ReplayJson,
    errors: [404, 422],
    record: SUBSCRIPTION,
  })
  async replay(
    @Context() context: CommandContext,
    @Param('id') id: string,
    @Body() body: ReplayDto,
  ): Promise<ReplayJson> {
    return this.deliveries.replay(context, parsePathId(id), body);
  }
}
