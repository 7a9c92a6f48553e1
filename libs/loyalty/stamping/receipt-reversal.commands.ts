import { Command, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import { isDeepStrictEqual } from 'node:util';
import { getNow } from '#platform/kernel/clock.js';
import { getCommandKey, type CommandContext } from '#platform/kernel/aggregate.js';
import { NotFoundError, RejectedError, UnavailableError } from '#platform/kernel/errors.js';
import { toPublicEventId } from '#platform/kernel/public-id.js';
import { RETRY, retryUntil } from '#platform/kernel/retry-until.js';
import {
  ClaimTakenError,
  ConflictError,
  EventStore,
  type Json,
  type StoredEvent,
} from '#platform/event-store/port/event-store.js';
import {
  MultiStreamCommands,
  toStreamDecision,
  toStreamRef,
  type FindState,
  type StreamRef,
} from '#platform/event-store/commands/multi-stream-commands.js';
import { PersonalKeys } from '#platform/event-store/personal-keys/personal-keys.js';
import { ReadModels, toStreamName } from '#platform/event-store/read-models/read-models.js';
import { assertStaffMayReverse } from './corrections.js';
import { CorrectionsService } from './corrections.service.js';
import type { CardRules } from './card-merging.js';
import { customerCard, type CustomerCard, type Template } from './customer-card.js';
import { toCustomerCardDetailJson } from './customer-card.dto.js';
import { customerCardReadModel, REVERSAL } from './customer-card.entity.js';
import { CustomerCardsService } from './customer-cards.service.js';
import { reverseReceipt, type ReceiptAction } from './receipt-reversal.js';
import type { ReversedReceiptJson } from './receipt-reversal.dto.js';
import { ReceiptUses } from './receipt-uses.service.js';
import { parseCardId, type ActionResult } from './receipts.service.js';
import { TemplatesService } from './templates.service.js';
import { priceRewards } from './unlocked-rewards.js';

const RETRY_MS = 50;
const RETRY_TIMEOUT_MS = 10_000;

/** The last stamping or redemption with a receipt number, and the event that reversed it. */
type LastUse = { stored: StoredEvent; reversal: StoredEvent | undefined };

/** @property isOwn whether the member of staff caused it who reverses it */
type OwnableAction = ReceiptAction & { isOwn: boolean };

/** What a receipt has done to one card. */
type CardActions = { id: number; actions: OwnableAction[] };

/** What the reversal is decided on. The card that was stamped is the first. */
type ReversalInputs = {
  cards: CardActions[];
  templates: Map<number, { template: Template }>;
  installed: Set<number>;
  streams: StreamRef[];
};

/** Reverses every stamping and redemption under a receipt number at once. */
export class ReverseReceipt extends Command<ActionResult<ReversedReceiptJson>> {
  constructor(
    readonly context: CommandContext,
    readonly externalRef: string,
    readonly reason: string,
    /** The user, if they may only reverse what they have just done themselves. */
    readonly staffId?: number,
  ) {
    super();
  }
}

@CommandHandler(ReverseReceipt)
export class ReverseReceiptHandler implements ICommandHandler<ReverseReceipt> {
  constructor(
    private readonly severalStreams: MultiStreamCommands,
    private readonly eventStore: EventStore,
    private readonly readModels: ReadModels,
    private readonly keys: PersonalKeys,
    private readonly uses: ReceiptUses,
    private readonly corrections: CorrectionsService,
    private readonly templates: TemplatesService,
    private readonly customerCards: CustomerCardsService,
  ) {}

  /** When nothing is left to reverse, returns the result of the last reversal. */
  execute(command: ReverseReceipt): Promise<ActionResult<ReversedReceiptJson>> {
    return retryUntil(
      {
        withinMs: RETRY_TIMEOUT_MS,
        delayMs: 0,
        isRetriable: (error) => error instanceof ClaimTakenError,
      },
      async () => {
        const uses = await this.findLastUses(command);
        if (listStandingIds(uses).length > 0) {
          return { body: await this.reverse(command, uses), isRepeated: false };
        }
        return { body: await this.repeat(command, uses), isRepeated: true };
      },
      (cause) => new UnavailableError('Others are reversing this receipt right now', { cause }),
    );
  }

  /**
   * @param uses as they were just found
   * @throws ClaimTakenError when others have reversed one of them since
   */
  private async reverse(command: ReverseReceipt, uses: LastUse[]): Promise<ReversedReceiptJson> {
    try {
      return await this.handle(command);
    } catch (error) {
      if (!(error instanceof RejectedError)) throw error;
      // The balance may have been too low because another request has just reversed the receipt.
      const standingIds = listStandingIds(await this.findLastUses(command));
      if (isDeepStrictEqual(standingIds, listStandingIds(uses))) throw error;
      throw new ClaimTakenError([REVERSAL]);
    }
  }

  private handle(command: ReverseReceipt): Promise<ReversedReceiptJson> {
    const { context, reason, staffId } = command;
    return this.severalStreams.handle<ReversalInputs, ReversedReceiptJson>({
      context,
      load: () => this.load(command),
      decide: (findState, { cards, templates }, now) => {
        if (staffId !== undefined) assertStaffMayReverseAll(cards, now);
        return {
          streamDecisions: cards.map(({ id, actions }) => {
            const card = getCard(findState, id);
            const template = getTemplate(templates, card);
            const events = reverseReceipt(card, template, { actions, reason });
            return toStreamDecision(
              customerCardReadModel,
              id,
              events,
              createCardRules(template, actions) as Json,
            );
          }),
          claims: cards.flatMap(({ id, actions }) =>
            actions.map(({ event }) =>
              this.keys.createClaim(
                context.accountId,
                REVERSAL,
                event.id,
                toStreamName(customerCard, id),
              ),
            ),
          ),
        };
      },
      respond: (findState, { cards, templates, installed }, now) => {
        const card = getCard(findState, cards[0]?.id ?? 0);
        const template = getTemplate(templates, card);
        const ids = cards.flatMap(({ actions }) => actions.map(({ event }) => event.id));
        return this.toJson(ids, { card, template, isInstalled: installed.has(card.id), now });
      },
      retriedKinds: [],
    });
  }

  private async load(command: ReverseReceipt): Promise<ReversalInputs> {
    const uses = await this.findLastUses(command);
    const standing = uses.filter(({ reversal }) => !reversal).map(({ stored }) => stored);
    // Others have reversed it since it was looked at.
    if (standing.length === 0) throw new ClaimTakenError([REVERSAL]);
    const ids = [...new Set(standing.map(({ stream }) => parseCardId(stream)))];
    const loaded = await Promise.all(
      ids.map((id) => this.readModels.load(customerCardReadModel, id)),
    );
    if (loaded.some((card) => card?.isErased)) throw this.keys.subjects.createErasedError();
    const { keyed } = command.context;
    if (keyed) keyed.subjectId ??= loaded[0]?.subjectId ?? undefined;
    const { staffId } = command;
    const actions = await Promise.all(
      standing.map(async (stored) => ({
        ...(await this.corrections.toReversible(stored)),
        isOwn: staffId !== undefined && (await this.corrections.isUser(stored.meta.actor, staffId)),
      })),
    );
    const cardIds = new Set(loaded.flatMap((card) => card?.state.cardId ?? []));
    return {
      cards: ids.map((id) => ({
        id,
        actions: actions.filter((_, i) => standing[i]?.stream === toStreamName(customerCard, id)),
      })),
      templates: await this.templates.load([...cardIds]),
      installed: await this.customerCards.findInstalled(ids, getNow()),
      streams: ids.map((id) => toStreamRef(customerCardReadModel, id)),
    };
  }

  /** Renders the result of the last reversal again. */
  private async repeat(
    { context: { keyed } }: ReverseReceipt,
    uses: LastUse[],
  ): Promise<ReversedReceiptJson> {
    const reversed = uses.flatMap(({ stored, reversal }) =>
      reversal ? [{ stored, reversal }] : [],
    );
    const [last] = reversed.toSorted((one, other) =>
      other.reversal.meta.recordedAt.localeCompare(one.reversal.meta.recordedAt),
    );
    const together = reversed.filter(
      ({ reversal }) => last && getCommandKey(reversal.meta) === getCommandKey(last.reversal.meta),
    );
    const [first] = together;
    const then = first && (await this.projectAfterCommand(first.reversal));
    if (!then) throw new Error('a reversed receipt has a reversal');
    const id = parseCardId(first.reversal.stream);
    if (keyed) keyed.subjectId ??= then.customerId;
    const now = getNow();
    const templates = await this.templates.load([then.cardId]);
    const installed = await this.customerCards.findInstalled([id], now);
    return this.toJson(
      together.map(({ stored }) => stored.id),
      {
        card: then,
        template: getTemplate(templates, then),
        isInstalled: installed.has(id),
        now,
      },
    );
  }

  /** Projects a card as the command that reversed something left it. */
  private async projectAfterCommand({
    stream,
    revision,
    meta,
  }: StoredEvent): Promise<CustomerCard | undefined> {
    let last = revision;
    for await (const event of this.eventStore.readStream(stream, { from: revision })) {
      if (getCommandKey(event.meta) !== getCommandKey(meta)) break;
      last = event.revision;
    }
    return (await this.readModels.project(customerCard, stream, { to: last }))?.state;
  }

  /**
   * Finds the last stamping and the last redemption with the receipt number, in this order. Those before them were
   * reversed, or the number could not have been used again.
   * @throws NotFoundError when there is neither
   * @throws UnavailableError when what happens to one is still open after ten seconds
   */
  private findLastUses({
    context: { accountId },
    externalRef,
  }: ReverseReceipt): Promise<LastUse[]> {
    return retryUntil(
      { withinMs: RETRY_TIMEOUT_MS, delayMs: RETRY_MS },
      async () => {
        const uses = await this.uses.list(accountId, externalRef, ['stamp', 'redeem']);
        const lastOfEach = uses.filter((use, i) => uses[i + 1]?.operation !== use.operation);
        if (lastOfEach.length === 0) throw new NotFoundError('Receipt');
        const lastUses: LastUse[] = [];
        for (const use of lastOfEach) {
          const stored = await this.uses.findEvent(use, externalRef);
          const reversal = stored && (await this.uses.findReversal(accountId, stored));
          if (!stored || reversal === 'pending') return RETRY;
          lastUses.push({ stored, reversal });
        }
        return lastUses;
      },
      () => new UnavailableError('Another request with this external_ref has not been settled yet'),
    );
  }

  private toJson(
    ids: string[],
    {
      card,
      template,
      isInstalled,
      now,
    }: { card: CustomerCard; template: Template; isInstalled: boolean; now: Date },
  ): ReversedReceiptJson {
    const renderContext = this.customerCards.createRenderContext(template, now, isInstalled);
    return {
      reversed: ids.map(toPublicEventId),
      customer_card: toCustomerCardDetailJson(card, renderContext),
    };
  }
}

export const receiptReversalHandlers = [ReverseReceiptHandler];

/** Lists the ids of the events that nobody has reversed. */
function listStandingIds(uses: LastUse[]): string[] {
  return uses.flatMap(({ stored, reversal }) => (reversal ? [] : [stored.id]));
}

/** @throws ForbiddenError when they may not reverse one of the actions */
function assertStaffMayReverseAll(cards: CardActions[], now: Date): void {
  for (const { event, isOwn } of cards.flatMap(({ actions }) => actions)) {
    assertStaffMayReverse(event, isOwn, now);
  }
}

/** @throws ConflictError: everything is loaded again */
function getCard(findState: FindState, id: number): CustomerCard {
  const card = findState(customerCardReadModel, id);
  if (!card) throw new ConflictError();
  return card;
}

function getTemplate(templates: ReversalInputs['templates'], { cardId }: CustomerCard): Template {
  const versioned = templates.get(cardId);
  if (!versioned) throw new Error(`card ${cardId} has customer cards but no row`);
  return versioned.template;
}

/** Creates what giving stamps back to a second card needs, if somebody else changes that card meanwhile. */
function createCardRules({ rewards, version }: Template, actions: ReceiptAction[]): CardRules {
  return {
    rewards: priceRewards(
      rewards,
      actions.flatMap(({ locked }) => locked),
    ),
    version,
  };
}
