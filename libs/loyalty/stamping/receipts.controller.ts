import { Body, Controller, Post, Res } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import type { FastifyReply } from 'fastify';
import type { CommandContext } from '#platform/kernel/aggregate.js';
import { Authenticated, Authenticator, Context, type Caller } from '#platform/http/caller.js';
import { Endpoint } from '#platform/http/endpoint.js';
import { unwrapResult } from './customer-cards.controller.js';
import { ReverseReceipt } from './receipt-reversal.commands.js';
import { ReversedReceiptJson, ReverseReceiptDto } from './receipt-reversal.dto.js';

@Controller('/api/v1/accounts/:account_id/receipts')
export class ReceiptsController {
  constructor(
    private readonly commands: CommandBus,
    private readonly authenticator: Authenticator,
  ) {}

  @Post('reverse')
  @Endpoint({
    id: 'reverseReceipt',
    tag: 'Customer cards',
    summary: 'Undo what a receipt has done',
    description:
      'Reverses every stamping and redemption with this receipt number (external_ref) at once, or none. Sends what reversing each of them sends. Repeated, it returns the first response. Adjustments stay. Staff may only reverse a receipt that they made themselves, within ten minutes.',
    path: ['account_id'],
    status: 200,
    response: ReversedReceiptJson,
    errors: [403, 404, 422],
    codes: ['insufficient_stamps', 'customer_erased', 'customer_merged'],
  })
  async reverse(
    @Context() context: CommandContext,
    @Authenticated() caller: Caller,
    @Body() { external_ref: externalRef, reason }: ReverseReceiptDto,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<ReversedReceiptJson> {
    const { accountId } = context;
    const denial = await this.authenticator.findDenial(caller, accountId, 'reverseCardEvent.any');
    const staffId = denial === null ? undefined : caller.principalId;
    const command = new ReverseReceipt(context, externalRef, reason, staffId);
    return unwrapResult(await this.commands.execute(command), reply);
  }
}
