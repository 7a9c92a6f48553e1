import { Command, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import { randomInt, randomUUID } from 'node:crypto';
import { Pool } from 'pg';
import { getNow } from '#platform/kernel/clock.js';
import type {
  Channel,
  CommandContext,
  DomainEvent,
  RecordedEvent,
} from '#platform/kernel/aggregate.js';
import { NotFoundError, TakenError, UnavailableError } from '#platform/kernel/errors.js';
import { retryUntil } from '#platform/kernel/retry-until.js';
import { takeIdFromBlock, withNewId } from '#platform/database/ids.js';
import { CapReachedError } from '#platform/event-store/port/caps.js';
import { ClaimTakenError, type Claim } from '#platform/event-store/port/event-store.js';
import { CommandPipeline } from '#platform/event-store/commands/handle-command.js';
import { PersonalKeys } from '#platform/event-store/personal-keys/personal-keys.js';
import { toStreamName } from '#platform/event-store/read-models/read-models.js';
import { RewardsService } from '#loyalty/rewards/rewards.service.js';
import { ClaimHolders } from './claim-holders.service.js';
import { CardMergedError, type CardPath } from './card-holder.js';
import { addImportedStamps, type ImportedCard } from './imported-stamps.js';
import {
  customerCard,
  issue,
  redeem,
  assertOpenForEnrolment,
  stamp,
  type CustomerCard,
  type Template,
} from './customer-card.js';
import {
  toChangedCustomerCardJson,
  toCustomerCardDetailJson,
  toRedemptionJson,
  type ChangedCustomerCardJson,
  type CustomerCardDetailJson,
  type RedemptionJson,
  type WrittenEvent,
} from './customer-card.dto.js';
import { customerCardCap, customerCardReadModel } from './customer-card.entity.js';
import type {
  ActionDetails,
  CustomerCardEvent,
  RewardRedeemed,
  StampsEarned,
} from './customer-card.events.js';
import { CustomerCardsService } from './customer-cards.service.js';
import { getOccurredAt } from './occurred-at.js';
import { ReceiptsService, type ActionResult } from './receipts.service.js';
import { TemplatesService, type ActionContext } from './templates.service.js';
import { ISSUES } from '#translations/issues.js';

const CODE_ALPHABET = '23456789ABCDEFGHJKLMNPQRSTUVWXYZ';
const CODE_LENGTH = 8;
const MAX_CODE_TRIES = 5;
const RETRY_MS = 50;
const RETRY_TIMEOUT_MS = 10_000;
/** Sets no limit: the cap only prevents an enrolment while the customer is being merged. */
const UNLIMITED = 2 ** 31;

/** Says how a stamping or redemption came: by the API, by a point-of-sale system, or by staff on a page. */
export type ActionSource = 'api' | 'pos' | 'app_scan';

type CardAction = ActionDetails & { source: ActionSource; occurredAt: Date | undefined };

export class EnrolCustomer extends Command<CustomerCardDetailJson> {
  constructor(
    readonly context: CommandContext,
    readonly customerId: number,
    readonly cardId: number,
    readonly importedCard: ImportedCard = {},
  ) {
    super();
  }
}

@CommandHandler(EnrolCustomer)
export class EnrolCustomerHandler implements ICommandHandler<EnrolCustomer> {
  constructor(
    private readonly pipeline: CommandPipeline,
    private readonly templates: TemplatesService,
    private readonly keys: PersonalKeys,
    private readonly customerCards: CustomerCardsService,
    private readonly holders: ClaimHolders,
    private readonly pool: Pool,
  ) {}

  async execute({
    context,
    customerId,
    cardId,
    importedCard,
  }: EnrolCustomer): Promise<CustomerCardDetailJson> {
    const { accountId } = context;
    const ids = { accountId, customerId };
    try {
      return await retryWhileMerging(() =>
        withNewId(this.pool, customerCardReadModel.table, (id) =>
          this.pipeline.handleCommand({
            readModel: customerCardReadModel,
            id,
            isNew: true,
            context,
            load: async () => {
              await this.customerCards.assertCanEnrol(accountId, customerId);
              return this.templates.get(accountId, cardId);
            },
            decide: (_state, template, now) => ({
              ...createEnrolment(this.keys, { id, ...ids }, template, now, importedCard),
              cap: { kind: customerCardCap, owner: customerId, id, max: UNLIMITED },
            }),
            respond: ({ state, inputs: template, now }) =>
              toCustomerCardDetailJson(
                state,
                this.customerCards.createRenderContext(template, now, false),
              ),
          }),
        ),
      );
    } catch (error) {
      if (!(error instanceof ClaimTakenError)) throw error;
      const claim = createEnrolmentClaim(this.keys, ids, cardId, '');
      const id = await this.holders.find(accountId, [claim], {
        rows: customerCardReadModel,
        mergedInto: ({ mergedInto }) => mergedInto?.id,
      });
      throw new TakenError(
        { card_id: [ISSUES.already_enrolled] },
        "Use the customer card that is there: it stands in the customer's customer_cards.",
        id === undefined ? undefined : { type: 'customer_card', id },
      );
    }
  }
}

function createEnrolmentClaim(
  keys: PersonalKeys,
  { accountId, customerId }: { accountId: number; customerId: number },
  cardId: number,
  stream: string,
): Claim {
  return keys.createClaim(accountId, 'enrolment', `${customerId} ${cardId}`, stream);
}

/** Creates a customer card with its claims: on its code, and on being the customer's only card of the template. */
export function createEnrolment(
  keys: PersonalKeys,
  ids: { id: number; accountId: number; customerId: number },
  template: Template,
  now: Date,
  { code = drawCode(), stampImport }: ImportedCard = {},
): { events: CustomerCardEvent[]; claims: Claim[] } {
  assertOpenForEnrolment(template, now);
  const stream = toStreamName(customerCard, ids.id);
  const issued = issue({ ...ids, uuid: randomUUID(), code }, template);
  return {
    events: addImportedStamps(issued, template, { ...ids, stampImport }, now),
    claims: [
      keys.createClaim(ids.accountId, 'card_code', code, stream),
      createEnrolmentClaim(keys, ids, template.cardId, stream),
    ],
  };
}

export function drawCode(): string {
  return Array.from({ length: CODE_LENGTH }, () =>
    CODE_ALPHABET.charAt(randomInt(CODE_ALPHABET.length)),
  ).join('');
}

/** Retries while the random code is taken, which happens in large stores. */
export async function retryUntilCodeIsFree<R>(enrol: () => Promise<R>): Promise<R> {
  for (let tries = 1; ; tries++) {
    try {
      return await enrol();
    } catch (error) {
      const again = error instanceof ClaimTakenError && error.kinds.includes('card_code');
      if (!again || tries === MAX_CODE_TRIES) throw error;
    }
  }
}

/** Retries while the customer is being merged, because the merge decides what follows. */
function retryWhileMerging<R>(enrol: () => Promise<R>): Promise<R> {
  return retryUntil(
    {
      withinMs: RETRY_TIMEOUT_MS,
      delayMs: RETRY_MS,
      isRetriable: (error) => error instanceof CapReachedError,
    },
    () => retryUntilCodeIsFree(enrol),
    (cause) => new UnavailableError('This customer is being merged right now', { cause }),
  );
}

/** Returns the card right after the action. */
export class StampCustomerCard extends Command<ActionResult<ChangedCustomerCardJson>> {
  constructor(
    readonly context: CommandContext,
    readonly path: CardPath,
    readonly action: CardAction & { stamps: number },
  ) {
    super();
  }
}

@CommandHandler(StampCustomerCard)
export class StampCustomerCardHandler implements ICommandHandler<StampCustomerCard> {
  constructor(
    private readonly pipeline: CommandPipeline,
    private readonly templates: TemplatesService,
    private readonly receipts: ReceiptsService,
    private readonly customerCards: CustomerCardsService,
  ) {}

  execute({
    context,
    path,
    action,
  }: StampCustomerCard): Promise<ActionResult<ChangedCustomerCardJson>> {
    return applyToSurvivingCard(path, (at) =>
      this.receipts.executeOnce<StampsEarned, ChangedCustomerCardJson>(context, at, {
        operation: 'stamp',
        externalRef: action.externalRef,
        isSame: ({ data }) => data.stamps === action.stamps,
        repeat: (first) =>
          renderChangedCard(this.customerCards, first.card, first, first.event, getNow()),
        execute: ({ details, claims }) =>
          this.pipeline.handleCommand({
            readModel: customerCardReadModel,
            id: at.id,
            context: { ...context, channel: toChannel(context, action.source) },
            load: (loaded) => this.templates.loadForAction(loaded, at, action),
            decide: (card, { template }, now) => ({
              events: stamp(
                card,
                template,
                { ...action, ...details, customerId: at.customerId },
                now,
              ),
              claims,
              occurredAt: getOccurredAt(card, action.occurredAt),
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
      }),
    );
  }
}

/** Returns the channel of an action: that of its page, such as the counter, or else its source. */
function toChannel({ channel }: CommandContext, source: ActionSource): Channel {
  return source === 'app_scan' ? channel : source;
}

/** Renders the response to a change of a card: the card right after it, and the id of its event. */
export function renderChangedCard(
  customerCards: CustomerCardsService,
  card: CustomerCard,
  { template, passInstalled }: ActionContext,
  event: WrittenEvent,
  now: Date,
): ChangedCustomerCardJson {
  const renderContext = customerCards.createRenderContext(template, now, passInstalled);
  return toChangedCustomerCardJson(card, renderContext, event);
}

export class RedeemReward extends Command<ActionResult<RedemptionJson>> {
  constructor(
    readonly context: CommandContext,
    readonly path: CardPath,
    readonly action: CardAction & { rewardId: number },
  ) {
    super();
  }
}

@CommandHandler(RedeemReward)
export class RedeemRewardHandler implements ICommandHandler<RedeemReward> {
  constructor(
    private readonly pipeline: CommandPipeline,
    private readonly templates: TemplatesService,
    private readonly receipts: ReceiptsService,
    private readonly rewards: RewardsService,
    private readonly pool: Pool,
  ) {}

  execute({ context, path, action }: RedeemReward): Promise<ActionResult<RedemptionJson>> {
    return applyToSurvivingCard(path, (at) => this.redeem(context, at, action)).catch(
      (error: unknown) => {
        if (!(error instanceof CapReachedError)) throw error;
        throw new NotFoundError('Reward');
      },
    );
  }

  private redeem(
    context: CommandContext,
    path: CardPath,
    action: RedeemReward['action'],
  ): Promise<ActionResult<RedemptionJson>> {
    return this.receipts.executeOnce<RewardRedeemed, RedemptionJson>(context, path, {
      operation: 'redeem',
      externalRef: action.externalRef,
      isSame: ({ data }) => data.rewardId === action.rewardId,
      repeat: (first) => toRedemptionJson(first.card, first.event, first.event),
      execute: async ({ details, claims }) => {
        const redemptionId = await takeIdFromBlock(this.pool, 'redemptions');
        const { source, ...actionDetails } = action;
        return this.pipeline.handleCommand({
          readModel: customerCardReadModel,
          id: path.id,
          context: { ...context, channel: toChannel(context, source) },
          load: async (loaded) => ({
            ...(await this.templates.loadForAction(loaded, path, action)),
            cap: await this.rewards.findRedemptionCap(action.rewardId, redemptionId),
          }),
          decide: (card, { template, cap }, at) => ({
            events: redeem(
              card,
              template,
              { ...actionDetails, ...details, redemptionId, customerId: path.customerId },
              at,
            ),
            claims,
            occurredAt: getOccurredAt(card, action.occurredAt),
            ...(cap && { cap }),
          }),
          respond: ({ state, events }) => {
            const event = events.find((recorded) => recorded.type === 'RewardRedeemed');
            if (!event) throw new Error('a redemption is always an event');
            return toRedemptionJson(state, event, findWrittenEvent(context, [event]));
          },
        });
      },
    });
  }
}

export const customerCardHandlers = [
  EnrolCustomerHandler,
  StampCustomerCardHandler,
  RedeemRewardHandler,
];

/**
 * Applies the request to the surviving card: the client may name a card that has been merged into another one since.
 */
function applyToSurvivingCard<R>(path: CardPath, act: (at: CardPath) => Promise<R>): Promise<R> {
  return act(path).catch((error: unknown) => {
    if (!(error instanceof CardMergedError)) throw error;
    return applyToSurvivingCard(error.into, act);
  });
}

/** Finds the event of an action: the first that it wrote, before those that follow from it. */
export function findWrittenEvent(
  { dryRun }: CommandContext,
  [event]: RecordedEvent<DomainEvent>[],
): WrittenEvent {
  return dryRun === true || !event ? null : event;
}
