import { Body, Controller, Param, Post, Res } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import type { FastifyReply } from 'fastify';
import type { CommandContext } from '#platform/kernel/aggregate.js';
import { Authenticated, Authenticator, Context, type Caller } from '#platform/http/caller.js';
import { Endpoint } from '#platform/http/endpoint.js';
import { createRecordLookup } from '#platform/http/record.js';
import { AdjustCustomerCard, ReverseCardEvent } from './corrections.commands.js';
import { CorrectionsService } from './corrections.service.js';
import { AdjustDto, ChangedCustomerCardJson, ReverseDto } from './customer-card.dto.js';
import {
  CUSTOMER_CARD,
  parseCardPath,
  unwrapResult,
  type Path,
} from './customer-cards.controller.js';
import { EVENT_ID } from './path-parameters.js';

type EventPath = Path & { event_id: string };

const CARD_EVENT = createRecordLookup(CorrectionsService, (corrections, accountId, path) => {
  const eventPath = path as EventPath;
  return corrections.assertEventExists(accountId, parseCardPath(eventPath), eventPath.event_id);
});

@Controller('/api/v1/accounts/:account_id/customers/:customer_id/customer_cards/:id')
export class CorrectionsController {
  constructor(
    private readonly commands: CommandBus,
    private readonly authenticator: Authenticator,
  ) {}

  @Post('adjust')
  @Endpoint({
    id: 'adjustCustomerCard',
    tag: 'Customer cards',
    summary: 'Correct a balance',
    description:
      'Adds or takes off stamps, for a reason that stands in the history. Sends stamp.earned with the source adjustment, and reward.unlocked for each reward whose threshold is reached, or stamp.removed. Works on expired cards too, and counts towards no limit. The same external_ref again repeats the first response and adds nothing.',
    path: ['account_id', 'customer_id', 'id'],
    status: 200,
    response: ChangedCustomerCardJson,
    errors: [404, 422],
    codes: ['taken', 'insufficient_stamps', 'customer_erased'],
    record: CUSTOMER_CARD,
  })
  async adjust(
    @Context() context: CommandContext,
    @Param() path: Path,
    @Body() { stamps, reason, external_ref: externalRef }: AdjustDto,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<ChangedCustomerCardJson> {
    const correction = { stamps, reason, externalRef };
    const command = new AdjustCustomerCard(context, parseCardPath(path), correction);
    return unwrapResult(await this.commands.execute(command), reply);
  }

  @Post('events/:event_id/reverse')
  @Endpoint({
    id: 'reverseCardEvent',
    tag: 'Customer cards',
    summary: 'Undo an event of a customer card',
    description:
      'Of a stamping, a redemption or an adjustment, and once only: takes the stamps off again, or gives back those that were spent. Sends stamp.removed, or stamp.earned with the source adjustment and reward.unlocked for each reward whose threshold is reached. A reversed stamping no longer counts towards the limits. Its receipt number may be used again on another customer card; on the same one it repeats the first response. Staff may only reverse what they did themselves, within ten minutes.',
    path: ['account_id', 'customer_id', 'id', EVENT_ID],
    status: 200,
    response: ChangedCustomerCardJson,
    errors: [403, 404, 422],
    codes: ['insufficient_stamps', 'customer_erased', 'customer_merged'],
    record: CARD_EVENT,
  })
  async reverse(
    @Context() context: CommandContext,
    @Authenticated() caller: Caller,
    @Param() { event_id: eventId, ...path }: EventPath,
    @Body() { reason }: ReverseDto,
  ): Promise<ChangedCustomerCardJson> {
    const { accountId } = context;
    const denial = await this.authenticator.findDenial(caller, accountId, 'reverseCardEvent.any');
    const staffId = denial === null ? undefined : caller.principalId;
    return this.commands.execute(
      new ReverseCardEvent(context, parseCardPath(path), eventId, reason, staffId),
    );
  }
}
