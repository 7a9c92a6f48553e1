import { Body, Controller, Get, Param, Post, Query, Res } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import type { FastifyReply } from 'fastify';
import { z } from 'zod';
import type { CommandContext } from '#kernel/aggregate.js';
import { pathId, readBody, readQuery } from '#http/body.js';
import { Context } from '#http/caller.js';
import { Endpoint } from '#http/endpoint.js';
import { Paged, pageQuery, Pages } from '#http/page.js';
import { EnrolCustomer, RedeemReward, StampCustomerCard } from './customer-card.commands.js';
import {
  actionDetailsOf,
  customerCardAnswer,
  customerCardDetailAnswer,
  cardActionQuery,
  enrolDto,
  redeemDto,
  redemptionAnswer,
  stampDto,
  type CustomerCardDetailJson,
  type CustomerCardJson,
  type RedemptionJson,
} from './customer-card.dto.js';
import { CustomerCardsService } from './customer-cards.service.js';

type Path = { customer_id: string; id: string };

@Controller('/api/v1/accounts/:account_id/customers/:customer_id/customer_cards')
export class CustomerCardsController {
  constructor(
    private readonly commands: CommandBus,
    private readonly customerCards: CustomerCardsService,
  ) {}

  @Get()
  @Endpoint({
    id: 'listCustomerCards',
    tag: 'Customer cards',
    summary: "A customer's cards, by id",
    path: ['account_id', 'customer_id'],
    query: pageQuery,
    status: 200,
    answer: z.array(customerCardAnswer),
    errors: [404, 422],
  })
  async list(
    @Context() { accountId }: CommandContext,
    @Param('customer_id') path: string,
    @Query() given: unknown,
    @Paged() pages: Pages,
  ): Promise<CustomerCardJson[]> {
    const customerId = pathId(path);
    await this.customerCards.refuseUnknownCustomer(accountId, customerId);
    return pages.answer(
      readQuery(pageQuery, given),
      (range) => this.customerCards.list(customerId, range),
      ({ id }) => [id],
    );
  }

  @Get(':id')
  @Endpoint({
    id: 'getCustomerCard',
    tag: 'Customer cards',
    summary: 'One customer card with the rewards within reach',
    path: ['account_id', 'customer_id', 'id'],
    status: 200,
    answer: customerCardDetailAnswer,
    errors: [404],
  })
  show(
    @Context() { accountId }: CommandContext,
    @Param() path: Path,
  ): Promise<CustomerCardDetailJson> {
    return this.customerCards.find(accountId, idsOf(path));
  }

  @Post()
  @Endpoint({
    id: 'enrolCustomer',
    tag: 'Customer cards',
    summary: 'Enrol a customer on a card, with its welcome stamps',
    description:
      'Sends customer_card.created, stamp.earned for welcome stamps, and reward.unlocked for what they reach. A customer has at most one card of each template.',
    path: ['account_id', 'customer_id'],
    body: enrolDto,
    status: 201,
    answer: customerCardDetailAnswer,
    errors: [404, 422],
  })
  async enrol(
    @Context() context: CommandContext,
    @Param('customer_id') path: string,
    @Body() body: unknown,
  ): Promise<CustomerCardDetailJson> {
    const customerId = pathId(path);
    const { card_id } = await readBody(enrolDto, body, {
      record: () => this.customerCards.refuseUnknownCustomer(context.accountId, customerId),
    });
    return this.commands.execute(new EnrolCustomer(context, customerId, card_id));
  }

  @Post(':id/stamp')
  @Endpoint({
    id: 'stampCustomerCard',
    tag: 'Customer cards',
    summary: 'Add stamps',
    description:
      'Sends stamp.earned, and reward.unlocked for each reward that comes within reach. The same external_ref again repeats the first answer and adds nothing.',
    path: ['account_id', 'customer_id', 'id'],
    query: cardActionQuery,
    body: stampDto,
    status: 200,
    answer: customerCardDetailAnswer,
    errors: [404, 422],
  })
  async stamp(
    @Context() context: CommandContext,
    @Param() path: Path,
    @Query() query: unknown,
    @Body() body: unknown,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<CustomerCardDetailJson> {
    const ids = idsOf(path);
    const record = () => this.customerCards.find(context.accountId, ids);
    const { dry_run: dryRun } = await readBody(cardActionQuery, query, { record });
    if (dryRun) reply.header('x-dry-run', 'true');
    const input = await readBody(stampDto, body, { record });
    return this.commands.execute(
      new StampCustomerCard({ ...context, dryRun }, ids, {
        ...actionDetailsOf(input),
        stamps: input.stamps,
      }),
    );
  }

  @Post(':id/redeem')
  @Endpoint({
    id: 'redeemReward',
    tag: 'Customer cards',
    summary: 'Hand over a reward and take its stamps off',
    description: 'Sends reward.redeemed. The same external_ref again repeats the first answer.',
    path: ['account_id', 'customer_id', 'id'],
    query: cardActionQuery,
    body: redeemDto,
    status: 200,
    answer: redemptionAnswer,
    errors: [404, 422],
  })
  async redeem(
    @Context() context: CommandContext,
    @Param() path: Path,
    @Query() query: unknown,
    @Body() body: unknown,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<RedemptionJson> {
    const ids = idsOf(path);
    const record = () => this.customerCards.find(context.accountId, ids);
    const { dry_run: dryRun } = await readBody(cardActionQuery, query, { record });
    if (dryRun) reply.header('x-dry-run', 'true');
    const input = await readBody(redeemDto, body, { record });
    return this.commands.execute(
      new RedeemReward({ ...context, dryRun }, ids, {
        ...actionDetailsOf(input),
        rewardId: input.reward_id,
      }),
    );
  }
}

function idsOf({ customer_id, id }: Path): { customerId: number; id: number } {
  return { customerId: pathId(customer_id), id: pathId(id) };
}
