import { Controller, Get, Param } from '@nestjs/common';
import type { CommandContext } from '#platform/kernel/aggregate.js';
import { Context } from '#platform/http/caller.js';
import { Endpoint } from '#platform/http/endpoint.js';
import { CustomerCardsService } from '#loyalty/stamping/customer-cards.service.js';
import {
  CUSTOMER_CARD,
  parseCardPath,
  type Path,
} from '#loyalty/stamping/customer-cards.controller.js';
import { Passes } from './passes.service.js';
import { toWalletJson, WalletJson } from './wallet-state.dto.js';

@Controller('/api/v1/accounts/:account_id/customers/:customer_id/customer_cards/:id')
export class WalletStateController {
  constructor(
    private readonly customerCards: CustomerCardsService,
    private readonly passes: Passes,
  ) {}

  @Get('wallet')
  @Endpoint({
    id: 'getWallet',
    tag: 'Customer cards',
    summary: 'Show where a customer keeps a card',
    description: 'For each wallet, whether the card is there and up to date.',
    path: ['account_id', 'customer_id', 'id'],
    status: 200,
    response: WalletJson,
    errors: [404],
    record: CUSTOMER_CARD,
  })
  async show(@Context() { accountId }: CommandContext, @Param() path: Path): Promise<WalletJson> {
    const { id } = await this.customerCards.get(accountId, parseCardPath(path));
    const [installations, pass] = await Promise.all([
      this.passes.findInstallations(id),
      this.passes.find(id),
    ]);
    return toWalletJson(id, installations, pass?.changedAt);
  }
}
