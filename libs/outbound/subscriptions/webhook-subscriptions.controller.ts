import { Body, Controller, Delete, Get, Param, Patch, Post, Query } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import type { CommandContext } from '#platform/kernel/aggregate.js';
import { Context } from '#platform/http/caller.js';
import { PublishesEvents, DeclaresTag, Endpoint } from '#platform/http/endpoint.js';
import { Paged, PageReader } from '#platform/http/page.js';
import { parsePathId } from '#platform/http/path.js';
import { createRecordLookup } from '#platform/http/record.js';
import { publicEvents } from '#outbound/public-events/public-event.dto.js';
import {
  CreateWebhookSubscription,
  DeleteWebhookSubscription,
  RotateWebhookSecret,
  UpdateWebhookSubscription,
} from './webhook-subscription.commands.js';
import {
  CreateWebhookSubscriptionDto,
  RotateSecretDto,
  toSubscriptionAttributes,
  toSubscriptionChanges,
  UpdateWebhookSubscriptionDto,
  WebhookSubscriptionJson,
  WebhookSubscriptionListQuery,
  WebhookSubscriptionSecretJson,
  WebhookTestJson,
} from './webhook-subscription.dto.js';
import { TestWebhookSubscription } from './webhook-test.commands.js';
import { WebhookSubscriptionsService } from './webhook-subscriptions.service.js';

const SUBSCRIPTION = createRecordLookup(
  WebhookSubscriptionsService,
  (subscriptions, accountId, { id = '' }) => subscriptions.get(accountId, parsePathId(id)),
);

@DeclaresTag({
  name: 'Webhook subscriptions',
  order: 90,
  description: 'URLs to which a store’s events are sent, with a signature.',
})
@Controller('/api/v1/accounts/:account_id/webhook_subscriptions')
@PublishesEvents(publicEvents)
export class WebhookSubscriptionsController {
  constructor(
    private readonly commands: CommandBus,
    private readonly subscriptions: WebhookSubscriptionsService,
  ) {}

  @Get()
  @Endpoint({
    id: 'listWebhookSubscriptions',
    tag: 'Webhook subscriptions',
    summary: 'List webhook subscriptions',
    description: "A store's webhook subscriptions, oldest first, without their secrets.",
    path: ['account_id'],
    status: 200,
    response: [WebhookSubscriptionJson],
    errors: [404, 422],
  })
  list(
    @Context() { accountId }: CommandContext,
    @Query() { event, ...page }: WebhookSubscriptionListQuery,
    @Paged() pages: PageReader,
  ): Promise<WebhookSubscriptionJson[]> {
    return pages.getPage(
      page,
      (range) => this.subscriptions.list(accountId, event, range),
      ({ id }) => [id],
    );
  }

  @Get(':id')
  @Endpoint({
    id: 'getWebhookSubscription',
    tag: 'Webhook subscriptions',
    summary: 'Show a webhook subscription',
    description: 'One webhook subscription, with its secret and the result of its last delivery.',
    path: ['account_id', 'id'],
    status: 200,
    response: WebhookSubscriptionSecretJson,
    errors: [404],
    record: SUBSCRIPTION,
  })
  show(
    @Context() context: CommandContext,
    @Param('id') id: string,
  ): Promise<WebhookSubscriptionSecretJson> {
    return this.subscriptions.showSecret(context, parsePathId(id));
  }

  @Post()
  @Endpoint({
    id: 'createWebhookSubscription',
    callback: '{$request.body#/target_url}',
    tag: 'Webhook subscriptions',
    summary: 'Create a webhook subscription',
    description:
      'Events are sent to the URL from now on. The response contains the secret that they are signed with.',
    path: ['account_id'],
    status: 201,
    response: WebhookSubscriptionSecretJson,
    errors: [404, 422],
    codes: ['limit_reached'],
  })
  async create(
    @Context() context: CommandContext,
    @Body() body: CreateWebhookSubscriptionDto,
  ): Promise<WebhookSubscriptionSecretJson> {
    return this.commands.execute(
      new CreateWebhookSubscription(context, toSubscriptionAttributes(body)),
    );
  }

  @Patch(':id')
  @Endpoint({
    id: 'updateWebhookSubscription',
    tag: 'Webhook subscriptions',
    summary: 'Update a webhook subscription',
    description:
      'Only the given fields change; enabled pauses and resumes, and resuming also sends what the pause has missed unless replay_missed is false.',
    path: ['account_id', 'id'],
    status: 200,
    response: WebhookSubscriptionJson,
    errors: [404, 422],
    record: SUBSCRIPTION,
  })
  async update(
    @Context() context: CommandContext,
    @Param('id') path: string,
    @Body() body: UpdateWebhookSubscriptionDto,
  ): Promise<WebhookSubscriptionJson> {
    return this.commands.execute(
      new UpdateWebhookSubscription(
        context,
        parsePathId(path),
        toSubscriptionChanges(body),
        body.replay_missed ?? true,
      ),
    );
  }

  @Post(':id/test')
  @Endpoint({
    id: 'testWebhookSubscription',
    tag: 'Webhook subscriptions',
    summary: 'Send a test event',
    description:
      'A signed webhook.test is sent once, even while the subscription is disabled. It does not count as a delivery.',
    path: ['account_id', 'id'],
    status: 200,
    response: WebhookTestJson,
    errors: [404],
    record: SUBSCRIPTION,
  })
  test(@Context() context: CommandContext, @Param('id') id: string): Promise<WebhookTestJson> {
    return this.commands.execute(new TestWebhookSubscription(context, parsePathId(id)));
  }

  @Post(':id/rotate_secret')
  @Endpoint({
    id: 'rotateWebhookSecret',
    tag: 'Webhook subscriptions',
    summary: 'Replace the signing secret',
    description:
      'The next deliveries are signed with the new secret, and also with the old one for grace_seconds. It also changes the kind of signature.',
    path: ['account_id', 'id'],
    status: 200,
    response: WebhookSubscriptionSecretJson,
    errors: [404, 422],
    record: SUBSCRIPTION,
  })
  async rotateSecret(
    @Context() context: CommandContext,
    @Param('id') path: string,
    @Body() { grace_seconds, signature }: RotateSecretDto,
  ): Promise<WebhookSubscriptionSecretJson> {
    return this.commands.execute(
      new RotateWebhookSecret(context, parsePathId(path), grace_seconds, signature),
    );
  }

  @Delete(':id')
  @Endpoint({
    id: 'deleteWebhookSubscription',
    tag: 'Webhook subscriptions',
    summary: 'Delete a webhook subscription',
    description: 'Its pending deliveries are deleted with it.',
    path: ['account_id', 'id'],
    status: 204,
    errors: [404],
    record: SUBSCRIPTION,
  })
  async remove(@Context() context: CommandContext, @Param('id') id: string): Promise<void> {
    await this.commands.execute(new DeleteWebhookSubscription(context, parsePathId(id)));
  }
}
