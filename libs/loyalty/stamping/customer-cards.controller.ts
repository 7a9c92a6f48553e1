import { Body, Controller, Get, Param, Post, Query, Res } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import type { FastifyReply } from 'fastify';
import type { CommandContext } from '#platform/kernel/aggregate.js';
import { AsOfPageQuery, AsOfQuery } from '#platform/http/as-of.js';
import { Context } from '#platform/http/caller.js';
import { DeclaresTag, Endpoint } from '#platform/http/endpoint.js';
import { Paged, PageReader } from '#platform/http/page.js';
import { parsePathId } from '#platform/http/path.js';
import { createRecordLookup } from '#platform/http/record.js';
import type { CardPath } from './card-holder.js';
import { EnrolCustomer, RedeemReward, StampCustomerCard } from './customer-card.commands.js';
import {
  toActionDetails,
  CardActionQuery,
  ChangedCustomerCardJson,
  CustomerCardDetailJson,
  CustomerCardJson,
  EnrolDto,
  RedeemDto,
  RedemptionJson,
  StampDto,
} from './customer-card.dto.js';
import { CustomerCardsService } from './customer-cards.service.js';
import type { ActionResult } from './receipts.service.js';

export type Path = { customer_id: string; id: string };

const CUSTOMER = createRecordLookup(
  CustomerCardsService,
  (cards, accountId, { customer_id = '' }) =>
    cards.assertCustomerExists(accountId, parsePathId(customer_id)),
);
export const CUSTOMER_CARD = createRecordLookup(CustomerCardsService, (cards, accountId, path) =>
  cards.get(accountId, parseCardPath(path as Path)),
);

@DeclaresTag({
  name: 'Customer cards',
  order: 60,
  description: 'A customer’s own card: stamp it, and redeem rewards from it.',
})
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
    summary: 'List the cards of a customer',
    description: 'By id, in the list shape.',
    path: ['account_id', 'customer_id'],
    status: 200,
    response: [CustomerCardJson],
    errors: [404, 422],
    record: CUSTOMER,
  })
  async list(
    @Context() { accountId }: CommandContext,
    @Param('customer_id') path: string,
    @Query() { as_of: time, ...page }: AsOfPageQuery,
    @Paged() pages: PageReader,
  ): Promise<CustomerCardJson[]> {
    const customerId = parsePathId(path);
    await this.customerCards.assertCustomerExists(accountId, customerId);
    const key = ({ id }: CustomerCardJson) => [id];
    if (time === null) {
      return pages.getPage(page, (range) => this.customerCards.list(customerId, range), key);
    }
    return pages.getPageFrom(page, await this.customerCards.listPast(customerId, time), key);
  }

  @Get(':id')
  @Endpoint({
    id: 'getCustomerCard',
    tag: 'Customer cards',
    summary: 'Show a customer card',
    description: 'In the detail shape, with the rewards that its balance covers.',
    path: ['account_id', 'customer_id', 'id'],
    status: 200,
    response: CustomerCardDetailJson,
    errors: [404, 422],
    record: CUSTOMER_CARD,
  })
  async show(
    @Context() { accountId }: CommandContext,
    @Param() path: Path,
    @Query() { as_of: time }: AsOfQuery,
  ): Promise<CustomerCardDetailJson> {
    const ids = parseCardPath(path);
    return time === null
      ? this.customerCards.get(accountId, ids)
      : this.customerCards.getPast(accountId, ids, time);
  }

  @Post()
  @Endpoint({
    id: 'enrolCustomer',
    tag: 'Customer cards',
    summary: 'Enrol a customer on a card',
    description:
      'The new card has the welcome stamps of its template. Sends customer_card.created, stamp.earned for welcome stamps, and reward.unlocked for each threshold that they reach. A customer has at most one card of each template.',
    path: ['account_id', 'customer_id'],
    status: 201,
    response: CustomerCardDetailJson,
    errors: [404, 422],
    codes: ['taken', 'customer_erased', 'customer_merged'],
    record: CUSTOMER,
  })
  async enrol(
    @Context() context: CommandContext,
    @Param('customer_id') path: string,
    @Body() { card_id }: EnrolDto,
  ): Promise<CustomerCardDetailJson> {
    return this.commands.execute(new EnrolCustomer(context, parsePathId(path), card_id));
  }

  @Post(':id/stamp')
  @Endpoint({
    id: 'stampCustomerCard',
    tag: 'Customer cards',
    summary: 'Add stamps',
    description:
      'Sends stamp.earned, and reward.unlocked for each reward whose threshold is reached. The same external_ref again repeats the first response and adds nothing.',
    path: ['account_id', 'customer_id', 'id'],
    status: 200,
    response: ChangedCustomerCardJson,
    errors: [404, 422],
    codes: ['taken', 'stamp_limit_reached', 'card_expired', 'customer_erased'],
    record: CUSTOMER_CARD,
  })
  stamp(
    @Context() context: CommandContext,
    @Param() path: Path,
    @Query() { dry_run: dryRun }: CardActionQuery,
    @Body() body: StampDto,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<ChangedCustomerCardJson> {
    const command = createStampCommand({ context, path: parseCardPath(path), dryRun, reply }, body);
    return this.commands.execute(command).then((result) => unwrapResult(result, reply));
  }

  @Post(':id/redeem')
  @Endpoint({
    id: 'redeemReward',
    tag: 'Customer cards',
    summary: 'Redeem a reward',
    description:
      'Deducts its stamps and sends reward.redeemed. The same external_ref again repeats the first response.',
    path: ['account_id', 'customer_id', 'id'],
    status: 200,
    response: RedemptionJson,
    errors: [404, 422],
    codes: ['taken', 'insufficient_stamps', 'reward_inactive', 'card_expired', 'customer_erased'],
    record: CUSTOMER_CARD,
  })
  async redeem(
    @Context() context: CommandContext,
    @Param() path: Path,
    @Query() { dry_run: dryRun }: CardActionQuery,
    @Body() body: RedeemDto,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<RedemptionJson> {
    const command = createRedeemCommand(
      { context, path: parseCardPath(path), dryRun, reply },
      body,
    );
    return unwrapResult(await this.commands.execute(command), reply);
  }
}

type ActionRequest = {
  context: CommandContext;
  path: CardPath;
  dryRun: boolean;
  reply: FastifyReply;
};

export function createStampCommand(request: ActionRequest, body: StampDto): StampCustomerCard {
  const details = { ...toActionDetails(body), stamps: body.stamps };
  return new StampCustomerCard(createContext(request), request.path, details);
}

export function createRedeemCommand(request: ActionRequest, body: RedeemDto): RedeemReward {
  const details = { ...toActionDetails(body), rewardId: body.reward_id };
  return new RedeemReward(createContext(request), request.path, details);
}

/** Says in the header whether a receipt number repeated an earlier action. */
export function unwrapResult<R>({ body, isRepeated }: ActionResult<R>, reply: FastifyReply): R {
  if (isRepeated) reply.header('idempotent-replayed', 'true');
  return body;
}

function createContext({ context, dryRun, reply }: ActionRequest): CommandContext {
  if (dryRun) reply.header('x-dry-run', 'true');
  return { ...context, dryRun };
}

export function parseCardPath({ customer_id, id }: Path): { customerId: number; id: number } {
  return { customerId: parsePathId(customer_id), id: parsePathId(id) };
}
