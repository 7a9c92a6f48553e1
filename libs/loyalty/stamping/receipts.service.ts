import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import type { CommandContext, RecordedEvent } from '#platform/kernel/aggregate.js';
import {
  NotFoundError,
  RejectedError,
  TakenError,
  UnavailableError,
} from '#platform/kernel/errors.js';
import { RETRY, retryUntil } from '#platform/kernel/retry-until.js';
import { toRecorded } from '#platform/event-store/port/codec.js';
import {
  ClaimTakenError,
  type Claim,
  type StoredEvent,
} from '#platform/event-store/port/event-store.js';
import { PersonalKeys } from '#platform/event-store/personal-keys/personal-keys.js';
import {
  ReadModels,
  toStreamName,
  type LoadedReadModel,
} from '#platform/event-store/read-models/read-models.js';
import { ClaimHolders } from './claim-holders.service.js';
import { CardMergedError, isHeldBy, type CardPath } from './card-holder.js';
import { customerCard, type CustomerCard, type Template } from './customer-card.js';
import { customerCardReadModel, getExtraValues } from './customer-card.entity.js';
import type { ReceiptDetails } from './customer-card.events.js';
import { MAX_RECEIPT_USES, type ReceiptEvent, type ReceiptOperation } from './receipt-numbers.js';
import { ReceiptUses, type ReceiptUse } from './receipt-uses.service.js';
import { TemplatesService } from './templates.service.js';
import type { Issue } from '#platform/kernel/issues.js';
import { ISSUES } from '#translations/issues.js';

/** Maximum number of receipt numbers that a process remembers as used. */
const MAX_REMEMBERED = 10_000;
const SETTLE_TIMEOUT_MS = 10_000;
const RETRY_MS = 50;
const RETRY_TIMEOUT_MS = 10_000;

/** The result of an action, or of an earlier one with the same receipt number. */
export type ActionResult<R> = { body: R; isRepeated: boolean };

/** An action that a receipt number was used for, and the card after it. */
export type EarlierAction<E extends ReceiptEvent> = {
  event: RecordedEvent<E>;
  card: CustomerCard;
  template: Template;
  passInstalled: boolean;
};

/** What an action adds to its event and its commit, so that its receipt number is used up. */
export type ReceiptUsage = { details: ReceiptDetails; claims: Claim[] };

const WITHOUT_RECEIPT: ReceiptUsage = { details: { receiptUse: 0 }, claims: [] };

/** An action that happens once for its receipt number. */
type OnceAction<E extends ReceiptEvent, R> = {
  operation: ReceiptOperation;
  externalRef: string | null;
  /** Tells whether an earlier action is the same as this one. */
  isSame: (event: RecordedEvent<E>) => boolean;
  /** Renders the result of an earlier action. */
  repeat: (earlier: EarlierAction<E>) => R;
  execute: (usage: ReceiptUsage) => Promise<R>;
};

/** @property claim of the number's first use */
type Attempt<E extends ReceiptEvent, R> = {
  context: CommandContext;
  path: CardPath;
  receipt: OnceAction<E, R> & { externalRef: string };
  claim: string;
};

/** Lets an action happen once for its receipt number (external_ref). */
@Injectable()
export class ReceiptsService {
  /**
   * Claims of numbers that were used lately. A claim that is taken undoes the commits of others in its group, so a client
   * that repeats its request must not try it again and again.
   */
  private readonly usedClaims = new LRUCache<string, true>({ max: MAX_REMEMBERED });

  constructor(
    private readonly uses: ReceiptUses,
    private readonly readModels: ReadModels,
    private readonly keys: PersonalKeys,
    private readonly templates: TemplatesService,
    private readonly holders: ClaimHolders,
  ) {}

  /**
   * Executes an action once for its receipt number, forever. Nearly always nobody has used the number: the claim of the
   * commit shows that. Only when it is taken, or a rule rejects the action, or what it names is gone, the number is looked up, which comes before any
   * rule: of two concurrent requests with the same number the second gets the result of the first. If the first wrote
   * nothing, the number stays free.
   * @throws UnavailableError when the number was taken and freed again for ten seconds
   */
  executeOnce<E extends ReceiptEvent, R>(
    context: CommandContext,
    path: CardPath,
    action: OnceAction<E, R>,
  ): Promise<ActionResult<R>> {
    const { externalRef } = action;
    if (externalRef === null) return action.execute(WITHOUT_RECEIPT).then(toFirstResult);
    const receipt = { ...action, externalRef };
    const usage = this.createUsage(context, path, receipt, 0);
    const claim = usage.claims.map(({ value }) => value.toString('base64')).join();
    const attempt = { context, path, receipt, claim };
    // A dry run claims nothing.
    return context.dryRun || this.usedClaims.has(claim)
      ? this.lookUpAndExecute(attempt)
      : this.execute(attempt, usage, () => this.lookUpAndExecute(attempt));
  }

  /** Executes an action unless it has been executed, and again while the number is taken and freed. */
  private lookUpAndExecute<E extends ReceiptEvent, R>(
    attempt: Attempt<E, R>,
  ): Promise<ActionResult<R>> {
    const { context, path, receipt } = attempt;
    return retryUntil(
      {
        withinMs: RETRY_TIMEOUT_MS,
        delayMs: 0,
        isRetriable: (error) => error instanceof ClaimTakenError,
      },
      async () => {
        const use = await this.find<E>(context, path, receipt);
        if ('earlier' in use) return { body: receipt.repeat(use.earlier), isRepeated: true };
        return this.execute(attempt, use);
      },
      (cause) => new UnavailableError('Others are using this external_ref right now', { cause }),
    );
  }

  /** @param handleTaken gets a result when the number is taken; by default that is an error */
  private execute<E extends ReceiptEvent, R>(
    { context, path, receipt, claim }: Attempt<E, R>,
    usage: ReceiptUsage,
    handleTaken?: () => Promise<ActionResult<R>>,
  ): Promise<ActionResult<R>> {
    return receipt.execute(usage).then(
      (body) => {
        if (context.dryRun !== true) this.usedClaims.set(claim, true);
        return toFirstResult(body);
      },
      async (error: unknown) => {
        if (error instanceof ClaimTakenError) {
          this.usedClaims.set(claim, true);
          if (handleTaken) return handleTaken();
        }
        if (!(error instanceof RejectedError || error instanceof NotFoundError)) throw error;
        // The same request may have succeeded before: for the last stamps, or a reward that was deleted since.
        const used = await this.find<E>(context, path, receipt);
        if (!('earlier' in used)) throw error;
        return { body: receipt.repeat(used.earlier), isRepeated: true };
      },
    );
  }

  private createUsage(
    { accountId }: CommandContext,
    { id }: CardPath,
    { operation, externalRef }: { operation: ReceiptOperation; externalRef: string },
    index: number,
  ): ReceiptUsage {
    const use = { operation, index, stream: toStreamName(customerCard, id) };
    return {
      details: { receiptUse: index },
      claims: [this.uses.createClaim(accountId, externalRef, use)],
    };
  }

  /**
   * Finds the action that used the receipt number on this card, or how to use it: nobody has, or each use on another card
   * was reversed. A commit may claim the number before it appends: until the action is in the history, or the
   * claim is free again, this waits.
   * @throws NotFoundError when the path names no customer card, CardMergedError when another one goes on for it
   * @throws TakenError when it was used on another card, or for something else
   * @throws UnavailableError when what happens to the claim is still open after ten seconds
   */
  private async find<E extends ReceiptEvent>(
    context: CommandContext,
    path: CardPath,
    receipt: Pick<OnceAction<E, unknown>, 'operation' | 'isSame'> & { externalRef: string },
  ): Promise<{ earlier: EarlierAction<E> } | ReceiptUsage> {
    const { accountId } = context;
    const { operation, externalRef } = receipt;
    const own = toStreamName(customerCard, path.id);
    return retryUntil(
      { withinMs: SETTLE_TIMEOUT_MS, delayMs: RETRY_MS },
      async () => {
        const first = await this.uses.findFirst(accountId, externalRef, operation);
        if (!first) return this.createUsage(context, path, receipt, 0);
        const current = await this.getCard(accountId, path);
        const uses =
          first.stream === own
            ? [first]
            : await this.uses.list(accountId, externalRef, [operation]);
        const use = await this.findUseOfCard(uses, path.id);
        if (use) {
          const earlier = await this.findEarlier<E>(use, externalRef, current);
          if (!earlier) return RETRY;
          if (receipt.isSame(earlier.event)) return { earlier };
          throw await this.createTakenError(use.stream, ISSUES.receipt_used_differently);
        }
        if (current.state.mergedInto) throw new CardMergedError(current.state.mergedInto);
        const last = uses.at(-1);
        if (!last) return RETRY;
        const reversal = await this.findReversal(accountId, last, externalRef);
        if (reversal === 'pending') return RETRY;
        if (reversal === undefined || uses.length >= MAX_RECEIPT_USES) {
          throw await this.createTakenError(last.stream, ISSUES.receipt_of_other_card);
        }
        return this.createUsage(context, path, receipt, last.index + 1);
      },
      () => new UnavailableError('Another request with this external_ref has not been settled yet'),
    );
  }

  /** Finds the use on this card itself, or else on one that was merged into it. */
  private async findUseOfCard(uses: ReceiptUse[], id: number): Promise<ReceiptUse | undefined> {
    const own = uses.find(({ stream }) => stream === toStreamName(customerCard, id));
    if (own) return own;
    for (const use of uses) if (await this.isMergedInto(use.stream, id)) return use;
    return undefined;
  }

  /** @returns undefined while the action is not in the history yet */
  private async findEarlier<E extends ReceiptEvent>(
    use: ReceiptUse,
    externalRef: string,
    current: LoadedReadModel<CustomerCard>,
  ): Promise<EarlierAction<E> | undefined> {
    const then = await this.readModels.project(customerCard, use.stream, { to: use.revision });
    const stored = await this.uses.findEvent(use, externalRef);
    const [opened] = stored ? await this.keys.openEvents([stored]) : [];
    if (!opened || then?.head.revision !== use.revision) return undefined;
    const { storeVersion, passInstalled } = getExtraValues(current);
    const template = await this.templates.getAtVersion(then.state.cardId, storeVersion);
    const event = toRecorded<E>(customerCard, opened);
    return { event, card: then.state, template, passInstalled };
  }

  private async findReversal(
    accountId: number,
    use: ReceiptUse,
    externalRef: string,
  ): Promise<StoredEvent | 'pending' | undefined> {
    const event = await this.uses.findEvent(use, externalRef);
    return event ? this.uses.findReversal(accountId, event) : 'pending';
  }

  private async createTakenError(stream: string, issue: Issue): Promise<TakenError> {
    const id = parseCardId(stream);
    const existing = await this.holders.findSurvivor(
      customerCardReadModel,
      id,
      ({ mergedInto }) => mergedInto?.id,
    );
    return new TakenError(
      { external_ref: [issue] },
      'Use a receipt number once for each operation; repeat it only with the request that it was first sent with.',
      { type: 'customer_card', id: existing },
    );
  }

  /** Tells whether a card was merged into another one, directly or through others in turn. Undoing a merge meanwhile may lead in a circle. */
  private async isMergedInto(stream: string, id: number): Promise<boolean> {
    let from = parseCardId(stream);
    for (const visited = new Set<number>(); from !== id;) {
      const card = await this.readModels.loadCurrent(customerCardReadModel, from);
      if (!card?.state.mergedInto || visited.has(from)) return false;
      visited.add(from);
      from = card.state.mergedInto.id;
    }
    return true;
  }

  private async getCard(
    accountId: number,
    { customerId, id }: CardPath,
  ): Promise<LoadedReadModel<CustomerCard>> {
    const current = await this.readModels.loadCurrent(customerCardReadModel, id);
    if (current?.state.accountId === accountId && isHeldBy(current.state, customerId))
      return current;
    throw new NotFoundError('Customer card');
  }
}

function toFirstResult<R>(body: R): ActionResult<R> {
  return { body, isRepeated: false };
}

/** Parses the id of a customer card from the name of its stream. */
export function parseCardId(stream: string): number {
  return Number(stream.slice(customerCard.name.length + 1));
}
