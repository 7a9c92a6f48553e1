import { Body, Controller, Delete, Get, Inject, Param, Post, Query } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import { z } from 'zod';
import type { CommandContext } from '#kernel/aggregate.js';
import type { Config } from '#kernel/config.js';
import { CONFIG } from '#database/database.module.js';
import { pathId, readBody, readQuery } from '#http/body.js';
import { Context } from '#http/caller.js';
import { Endpoint } from '#http/endpoint.js';
import { PUBLIC_ONLY } from './target-address.js';
import { Paged, Pages } from '#http/page.js';
import {
  CreateWebhookSubscription,
  DeleteWebhookSubscription,
} from './webhook-subscription.commands.js';
import {
  createWebhookSubscriptionDto,
  subscriptionAttributes,
  webhookSubscriptionAnswer,
  webhookSubscriptionListQuery,
  webhookSubscriptionSecretAnswer,
  webhookSubscriptionSecretJson,
  type WebhookSubscriptionJson,
  type WebhookSubscriptionSecretJson,
} from './webhook-subscription.dto.js';
import { WebhookSubscriptionsService } from './webhook-subscriptions.service.js';

@Controller('/api/v1/accounts/:account_id/webhook_subscriptions')
export class WebhookSubscriptionsController {
  private readonly createDto: ReturnType<typeof createWebhookSubscriptionDto>;

  constructor(
    private readonly commands: CommandBus,
    private readonly subscriptions: WebhookSubscriptionsService,
    @Inject(CONFIG) config: Config,
  ) {
    this.createDto = createWebhookSubscriptionDto(config);
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
    const { subscription, secret } = await this.commands.execute(
      new CreateWebhookSubscription(context, subscriptionAttributes(input)),
    );
    return webhookSubscriptionSecretJson(subscription, secret);
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
