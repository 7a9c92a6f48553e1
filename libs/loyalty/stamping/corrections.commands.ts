import { Command, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import { getNow } from '#platform/kernel/clock.js';
import { getBalanceChange, type CommandContext } from '#platform/kernel/aggregate.js';
import { ClaimTakenError } from '#platform/event-store/port/event-store.js';
import { CommandPipeline } from '#platform/event-store/commands/handle-command.js';
import { PersonalKeys } from '#platform/event-store/personal-keys/personal-keys.js';
import {
  toStreamName,
  type LoadedReadModel,
} from '#platform/event-store/read-models/read-models.js';
import type { CardPath } from './card-holder.js';
import {
  adjust,
  assertStaffMayReverse,
  createAlreadyReversedError,
  reverse,
} from './corrections.js';
import { CorrectionsService } from './corrections.service.js';
import { customerCard, type CustomerCard } from './customer-card.js';
import { findWrittenEvent, renderChangedCard } from './customer-card.commands.js';
import { toChangedCustomerCardJson, type ChangedCustomerCardJson } from './customer-card.dto.js';
import { customerCardReadModel, REVERSAL } from './customer-card.entity.js';
import {
  customerCardEvents,
  type StampsEarned,
  type StampsRemoved,
} from './customer-card.events.js';
import { CustomerCardsService } from './customer-cards.service.js';
import { ReceiptsService, type ActionResult } from './receipts.service.js';
import { TemplatesService } from './templates.service.js';

const NO_LOCATION = { locationId: null };

/** Returns the card right after the correction. */
export class AdjustCustomerCard extends Command<ActionResult<ChangedCustomerCardJson>> {
  constructor(
    readonly context: CommandContext,
    readonly path: CardPath,
    readonly correction: { stamps: number; reason: string; externalRef: string | null },
  ) {
    super();
  }
}

@CommandHandler(AdjustCustomerCard)
export class AdjustCustomerCardHandler implements ICommandHandler<AdjustCustomerCard> {
  constructor(
    private readonly pipeline: CommandPipeline,
    private readonly templates: TemplatesService,
    private readonly receipts: ReceiptsService,
    private readonly customerCards: CustomerCardsService,
  ) {}

  execute({
    context,
    path,
    correction,
  }: AdjustCustomerCard): Promise<ActionResult<ChangedCustomerCardJson>> {
    const { stamps, externalRef } = correction;
    return this.receipts.executeOnce<StampsEarned | StampsRemoved, ChangedCustomerCardJson>(
      context,
      path,
      {
        operation: 'adjust',
        externalRef,
        isSame: (event) => getBalanceChange(customerCardEvents, event) === stamps,
        repeat: (first) =>
          renderChangedCard(this.customerCards, first.card, first, first.event, getNow()),
        execute: ({ details, claims }) =>
          this.pipeline.handleCommand({
            readModel: customerCardReadModel,
            id: path.id,
            context,
            load: (loaded) => this.templates.loadForAction(loaded, path, NO_LOCATION),
            decide: (card, { template }) => ({
              events: adjust(card, template, {
                ...correction,
                ...details,
                customerId: path.customerId,
              }),
              claims,
            }),
            respond: ({ state, inputs, events, now }) =>
              renderChangedCard(
                this.customerCards,
                state,
                inputs,
                findWrittenEvent(context, events),
                now,
              ),
          }),
      },
    );
  }
}

/** Returns the card right after the reversal. */
export class ReverseCardEvent extends Command<ChangedCustomerCardJson> {
  constructor(
    readonly context: CommandContext,
    readonly path: CardPath,
    /** As webhooks show it. */
    readonly eventId: string,
    readonly reason: string,
    /** The user, if they may only reverse what they have just done themselves. */
    readonly staffId?: number,
  ) {
    super();
  }
}

@CommandHandler(ReverseCardEvent)
export class ReverseCardEventHandler implements ICommandHandler<ReverseCardEvent> {
  constructor(
    private readonly pipeline: CommandPipeline,
    private readonly templates: TemplatesService,
    private readonly keys: PersonalKeys,
    private readonly corrections: CorrectionsService,
    private readonly customerCards: CustomerCardsService,
  ) {}

  async execute(command: ReverseCardEvent): Promise<ChangedCustomerCardJson> {
    const { context, path, reason, staffId } = command;
    try {
      return await this.pipeline.handleCommand({
        readModel: customerCardReadModel,
        id: path.id,
        context,
        load: (loaded) => this.loadReversal(command, loaded),
        decide: (card, { template, event, locked, claim, isReversed, isOwn }, now) => {
          if (staffId !== undefined) assertStaffMayReverse(event, isOwn, now);
          const events = reverse(card, template, {
            customerId: path.customerId,
            reason,
            event,
            locked,
            isReversed,
          });
          return { events, claims: [claim] };
        },
        respond: ({ state, inputs: { template, passInstalled }, events, now }) =>
          toChangedCustomerCardJson(
            state,
            this.customerCards.createRenderContext(template, now, passInstalled),
            findWrittenEvent(context, events),
          ),
      });
    } catch (error) {
      if (error instanceof ClaimTakenError) throw createAlreadyReversedError();
      throw error;
    }
  }

  private async loadReversal(
    { context: { accountId }, path, eventId, staffId }: ReverseCardEvent,
    loaded: LoadedReadModel<CustomerCard> | undefined,
  ) {
    const { template, passInstalled } = await this.templates.loadForAction(
      loaded,
      path,
      NO_LOCATION,
    );
    const { event, locked } = await this.corrections.getEvent(path.id, eventId);
    const stream = toStreamName(customerCard, path.id);
    const claim = this.keys.createClaim(accountId, REVERSAL, event.id, stream);
    const revision = loaded?.head.revision ?? -1;
    const isReversed = await this.corrections.isClaimed(accountId, claim, revision);
    const isOwn =
      staffId !== undefined && (await this.corrections.isUser(event.meta.actor, staffId));
    return { template, passInstalled, event, locked, claim, isReversed, isOwn };
  }
}

export const correctionHandlers = [AdjustCustomerCardHandler, ReverseCardEventHandler];
