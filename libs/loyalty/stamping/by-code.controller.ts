import { Body, Controller, Get, Param, Post, Query, Res } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import type { FastifyReply } from 'fastify';
import type { CommandContext } from '#platform/kernel/aggregate.js';
import { Context } from '#platform/http/caller.js';
import { Endpoint } from '#platform/http/endpoint.js';
import { createRecordLookup } from '#platform/http/record.js';
import {
  CardActionQuery,
  ChangedCustomerCardJson,
  CustomerCardDetailJson,
  RedeemDto,
  RedemptionJson,
  StampDto,
} from './customer-card.dto.js';
import {
  unwrapResult,
  createRedeemCommand,
  createStampCommand,
} from './customer-cards.controller.js';
import { CustomerCardsService, type CodeMatch } from './customer-cards.service.js';
import { assertConfirmed, ConfirmDecoyCard } from './decoy-confirmation.commands.js';
import { CARD_CODE } from './path-parameters.js';

const CUSTOMER_CARD = createRecordLookup(CustomerCardsService, (cards, accountId, { code = '' }) =>
  cards.getPathByCode(accountId, code),
);

/** Serves clients that scan a code and know no ids. */
@Controller('/api/v1/accounts/:account_id/customer_cards/by_code/:code')
export class ByCodeController {
  constructor(
    private readonly commands: CommandBus,
    private readonly customerCards: CustomerCardsService,
  ) {}

  @Get()
  @Endpoint({
    id: 'getCustomerCardByCode',
    tag: 'Customer cards',
    summary: 'Show the customer card with a code',
    description:
      'As by its ids, for clients that scan a code and know no ids. The code of a second card, which somebody gets who signs up with the address of a customer, shows the card of that customer: its `code` differs from the one in the path.',
    path: ['account_id', CARD_CODE],
    status: 200,
    response: CustomerCardDetailJson,
    errors: [404],
    record: CUSTOMER_CARD,
  })
  async show(
    @Context() { accountId }: CommandContext,
    @Param('code') code: string,
  ): Promise<CustomerCardDetailJson> {
    return this.customerCards.get(
      accountId,
      await this.customerCards.getPathByCode(accountId, code),
    );
  }

  @Post('stamp')
  @Endpoint({
    id: 'stampByCode',
    tag: 'Customer cards',
    summary: 'Add stamps to the customer card with a code',
    description:
      'As by id: sends stamp.earned, and reward.unlocked for each reward whose threshold is reached. The same external_ref again, by code or by id, repeats the first response and adds nothing.',
    path: ['account_id', CARD_CODE],
    status: 200,
    response: ChangedCustomerCardJson,
    errors: [404, 422],
    codes: ['taken', 'stamp_limit_reached', 'card_expired', 'customer_erased'],
    record: CUSTOMER_CARD,
  })
  async stamp(
    @Context() context: CommandContext,
    @Param('code') code: string,
    @Query() { dry_run: dryRun }: CardActionQuery,
    @Body() body: StampDto,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<ChangedCustomerCardJson> {
    const path = await this.findPath(context, code);
    const command = createStampCommand({ context, path, dryRun, reply }, body);
    return unwrapResult(await this.commands.execute(command), reply);
  }

  @Post('redeem')
  @Endpoint({
    id: 'redeemByCode',
    tag: 'Customer cards',
    summary: 'Redeem a reward from the customer card with a code',
    description:
      'As by id: deducts its stamps and sends reward.redeemed. The same external_ref again, by code or by id, repeats the first response.',
    path: ['account_id', CARD_CODE],
    status: 200,
    response: RedemptionJson,
    errors: [404, 422],
    codes: [
      'taken',
      'insufficient_stamps',
      'reward_inactive',
      'card_expired',
      'customer_erased',
      'card_unconfirmed',
    ],
    record: CUSTOMER_CARD,
  })
  async redeem(
    @Context() context: CommandContext,
    @Param('code') code: string,
    @Query() { dry_run: dryRun }: CardActionQuery,
    @Body() body: RedeemDto,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<RedemptionJson> {
    const path = await this.findPath(context, code);
    assertConfirmed(path);
    const command = createRedeemCommand({ context, path, dryRun, reply }, body);
    return unwrapResult(await this.commands.execute(command), reply);
  }

  @Post('confirm')
  @Endpoint({
    id: 'confirmCustomerCardByCode',
    tag: 'Customer cards',
    summary: 'Confirm that a second card belongs to its customer',
    description:
      'Somebody who signs up with the address of a customer gets a second card, which shows nothing of the customer. Its code stamps the card of the customer, but redeems nothing until staff have confirmed that it is them. From then on its page leads to the card of the customer. The code of a card itself changes nothing.',
    path: ['account_id', CARD_CODE],
    status: 200,
    response: CustomerCardDetailJson,
    errors: [404, 422],
    codes: ['limit_reached'],
    record: CUSTOMER_CARD,
  })
  async confirm(
    @Context() context: CommandContext,
    @Param('code') code: string,
  ): Promise<CustomerCardDetailJson> {
    const path = await this.findPath(context, code);
    await this.commands.execute(new ConfirmDecoyCard(context, code));
    return this.customerCards.get(context.accountId, path);
  }

  private async findPath({ accountId, keyed }: CommandContext, code: string): Promise<CodeMatch> {
    const path = await this.customerCards.getPathByCode(accountId, code);
    // The address does not say whom the response is about, and it must be erasable with that person.
    if (keyed) keyed.subjectId ??= path.customerId;
    return path;
  }
}
