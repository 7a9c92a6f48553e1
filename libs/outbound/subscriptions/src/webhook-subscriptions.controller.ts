import { Body, Controller, Delete, Get, Inject, Param, Patch, Post, Query } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import { z } from 'zod';
import type { CommandContext } from '#kernel/aggregate.js';
import type { Config } from '#kernel/config.js';
import { CONFIG } from '#database/database.module.js';
import { pathId, readBody, readQuery } from '#http/body.js';
import { Context } from '#http/caller.js';
import { PublishesWebhooks, Endpoint } from '#http/endpoint.js';
import { Paged, Pages } from '#http/page.js';
import { publicEvents } from '#public-events/public-event.dto.js';
import { PUBLIC_ONLY } from '#sending/target-address.js';
import {
  CreateWebhookSubscription,
  DeleteWebhookSubscription,
  RotateWebhookSecret,
  TestWebhookSubscription,
  UpdateWebhookSubscription,
} from './webhook-subscription.commands.js';
import {
  createWebhookSubscriptionDto,
  rotateSecretDto,
  subscriptionAttributes,
  subscriptionChanges,
  updateWebhookSubscriptionDto,
  webhookSubscriptionAnswer,
  webhookSubscriptionListQuery,
  webhookSubscriptionSecretAnswer,
  webhookTestAnswer,
  type WebhookSubscriptionJson,
  type WebhookSubscriptionSecretJson,
  type WebhookTestJson,
} from './webhook-subscription.dto.js';
import { WebhookSubscriptionsService } from './webhook-subscriptions.service.js';

@Controller('/api/v1/accounts/:account_id/webhook_subscriptions')
@PublishesWebhooks(publicEvents)
export class WebhookSubscriptionsController {
  private readonly createDto: ReturnType<typeof createWebhookSubscriptionDto>;
  private readonly updateDto: ReturnType<typeof updateWebhookSubscriptionDto>;

  constructor(
    private readonly commands: CommandBus,
    private readonly subscriptions: WebhookSubscriptionsService,
    @Inject(CONFIG) config: Config,
  ) {
    this.createDto = createWebhookSubscriptionDto(config);
    this.updateDto = updateWebhookSubscriptionDto(config);
  }

  @Get()
  @Endpoint({
    id: 'listWebhookSubscriptions',
    tag: 'Webhook subscriptions',
    summary: "A store's webhook subscriptions, oldest first, without their secrets",
    path: ['account_id'],
    query: webhookSubscriptionListQuery,
    status: 200,
    answer: z.array(webhookSubscriptionAnswer),
    errors: [404, 422],
  })
  list(
    @Context() { accountId }: CommandContext,
    @Query() given: unknown,
    @Paged() pages: Pages,
  ): Promise<WebhookSubscriptionJson[]> {
    const { event, ...page } = readQuery(webhookSubscriptionListQuery, given);
    return pages.answer(
      page,
      (range) => this.subscriptions.list(accountId, event, range),
      ({ id }) => [id],
    );
  }

  @Get(':id')
  @Endpoint({
    id: 'getWebhookSubscription',
    tag: 'Webhook subscriptions',
    summary: 'One webhook subscription, with its secret and how the last delivery went',
    path: ['account_id', 'id'],
    status: 200,
    answer: webhookSubscriptionSecretAnswer,
    errors: [404],
  })
  show(
    @Context() { accountId }: CommandContext,
    @Param('id') id: string,
  ): Promise<WebhookSubscriptionSecretJson> {
    return this.subscriptions.find(accountId, pathId(id));
  }

  @Post()
  @Endpoint({
    id: 'createWebhookSubscription',
    tag: 'Webhook subscriptions',
    summary: 'Have events sent to a URL, from now on',
    path: ['account_id'],
    body: createWebhookSubscriptionDto(PUBLIC_ONLY),
    status: 201,
    answer: webhookSubscriptionSecretAnswer,
    errors: [404, 422],
  })
  async create(
    @Context() context: CommandContext,
    @Body() body: unknown,
  ): Promise<WebhookSubscriptionSecretJson> {
    const input = await readBody(this.createDto, body);
    return this.commands.execute(
      new CreateWebhookSubscription(context, subscriptionAttributes(input)),
    );
  }

  @Patch(':id')
  @Endpoint({
    id: 'updateWebhookSubscription',
    tag: 'Webhook subscriptions',
    summary: 'Change what is named; enabled pauses and resumes',
    path: ['account_id', 'id'],
    body: updateWebhookSubscriptionDto(PUBLIC_ONLY),
    status: 200,
    answer: webhookSubscriptionAnswer,
    errors: [404, 422],
  })
  async update(
    @Context() context: CommandContext,
    @Param('id') path: string,
    @Body() body: unknown,
  ): Promise<WebhookSubscriptionJson> {
    const id = pathId(path);
    const input = await readBody(this.updateDto, body, {
      record: () => this.subscriptions.find(context.accountId, id),
    });
    return this.commands.execute(
      new UpdateWebhookSubscription(context, id, subscriptionChanges(input)),
    );
  }

  @Post(':id/test')
  @Endpoint({
    id: 'testWebhookSubscription',
    tag: 'Webhook subscriptions',
    summary: 'Send a signed webhook.test now',
    description: 'Sent once, also while disabled. It counts for nothing.',
    path: ['account_id', 'id'],
    status: 200,
    answer: webhookTestAnswer,
    errors: [404],
  })
  test(@Context() context: CommandContext, @Param('id') id: string): Promise<WebhookTestJson> {
    return this.commands.execute(new TestWebhookSubscription(context, pathId(id)));
  }

  @Post(':id/rotate_secret')
  @Endpoint({
    id: 'rotateWebhookSecret',
    tag: 'Webhook subscriptions',
    summary: 'Replace the signing secret at once',
    path: ['account_id', 'id'],
    body: rotateSecretDto,
    status: 200,
    answer: webhookSubscriptionSecretAnswer,
    errors: [404, 422],
  })
  async rotateSecret(
    @Context() context: CommandContext,
    @Param('id') path: string,
    @Body() body: unknown,
  ): Promise<WebhookSubscriptionSecretJson> {
    const id = pathId(path);
    const { grace_seconds } = await readBody(rotateSecretDto, body, {
      record: () => this.subscriptions.find(context.accountId, id),
    });
    return this.commands.execute(new RotateWebhookSecret(context, id, grace_seconds));
  }

  @Delete(':id')
  @Endpoint({
    id: 'deleteWebhookSubscription',
    tag: 'Webhook subscriptions',
    summary: 'Delete a webhook subscription; what is still to be delivered to it goes with it',
    path: ['account_id', 'id'],
    status: 204,
    errors: [404],
  })
  async remove(@Context() context: CommandContext, @Param('id') id: string): Promise<void> {
    await this.commands.execute(new DeleteWebhookSubscription(context, pathId(id)));
  }
}
