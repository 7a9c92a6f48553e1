import { Injectable } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import { Config } from '#configuration/config.js';
import type { CommandContext } from '#platform/kernel/aggregate.js';
import { getOwnerKey } from '#platform/database/database-waits.js';
import { FairQueue } from '#platform/kernel/fair-queue.js';
import {
  InvalidFieldsError,
  NotFoundError,
  RejectedError,
  UnavailableError,
} from '#platform/kernel/errors.js';
import { AccountTimeZones } from '#platform/http/input.js';
import { renderOperationError } from '#platform/http/errors.filter.js';
import { hasDate, readFields } from '#platform/http/dtos.js';
import { BatchOperationDto, type BatchResultJson } from './batch.dto.js';
import type { CardPath } from './card-holder.js';
import { RedeemReward, StampCustomerCard, type ActionSource } from './customer-card.commands.js';
import { toActionDetails } from './customer-card.dto.js';
import { CustomerCardsService } from './customer-cards.service.js';
import { assertConfirmed } from './decoy-confirmation.commands.js';
import { runInOrder } from './ordered-operations.js';
import { ISSUES } from '#translations/issues.js';

/** A quarter of what the event store commits together: others wait for the group before theirs. */
const CONCURRENCY = 16;
/** A batch keeps the process busy for as long as a hundred requests, so each store runs one at a time. */
const SLOTS = { concurrency: 4, getMaxRunning: () => 1, maxWaiting: 100, waitMs: 5_000 };
/** An operation that begins later might not end in time: the response would be there too late for its caller. */
const BEGIN_WITHIN_MS = 5_000;

/** An operation with the card that it is for, or why there is none. */
type Target = { input: BatchOperationDto; path: CardPath } | { error: Error };

type ParsedOperation = { input: BatchOperationDto } | { error: Error };

/** Executes many stampings and redemptions, each as if it were a request of its own. */
@Injectable()
export class BatchesService {
  private readonly slots = new FairQueue(SLOTS);

  constructor(
    private readonly commands: CommandBus,
    private readonly customerCards: CustomerCardsService,
    private readonly timeZones: AccountTimeZones,
    private readonly config: Config,
  ) {}

  /**
   * Executes the operations. Those on one card, and those with one receipt number, follow each other in their order.
   * @param source of all of them, where it is not that of each operation
   * @throws UnavailableError when nothing could be executed
   */
  execute(
    context: CommandContext,
    operations: unknown[],
    source?: ActionSource,
  ): Promise<BatchResultJson[]> {
    const endsAt = performance.now() + BEGIN_WITHIN_MS;
    return this.slots.run(getOwnerKey(context.accountId), () =>
      this.executeAll(context, operations, endsAt, source),
    );
  }

  private async executeAll(
    context: CommandContext,
    operations: unknown[],
    endsAt: number,
    source: ActionSource | undefined,
  ): Promise<BatchResultJson[]> {
    const timeZone = await this.findTimeZone(context, operations);
    const targets = await this.findTargets(
      context,
      operations.map((operation) => parseOperation(operation, timeZone)),
    );
    const { keyed, ...own } = context;
    const results = await runInOrder(targets, {
      getKeys,
      concurrency: CONCURRENCY,
      run: (target) => this.executeOne(own, target, endsAt, source),
    });
    if (keyed) {
      keyed.subjectIds = listCustomers(targets);
      keyed.releasesKey = results.some(({ status }) => status >= 500);
    }
    return results;
  }

  /** Finds the time zone of dates in place of times, if there are any. */
  private async findTimeZone(
    { accountId }: CommandContext,
    operations: unknown[],
  ): Promise<string | undefined> {
    const hasDates = operations.some((operation) => hasDate(BatchOperationDto, operation));
    return hasDates ? this.timeZones.getTimeZone(accountId) : undefined;
  }

  /** Reads the cards of all operations together: one statement for the codes, and one for the cards. */
  private async findTargets(
    { accountId }: CommandContext,
    operations: ParsedOperation[],
  ): Promise<Target[]> {
    const inputs = operations.flatMap((target) => ('input' in target ? [target.input] : []));
    const codes = inputs.flatMap(({ code }) => (code === null ? [] : [code]));
    const matches = await this.customerCards.findPathsByCode(accountId, codes);
    const ids = inputs.flatMap(({ customer_card_id: id }) => (id === null ? [] : [id]));
    for (const { id } of matches.values()) ids.push(id);
    const paths = await this.customerCards.findPaths(accountId, ids);
    return operations.map((operation) => {
      if ('error' in operation) return operation;
      const { input } = operation;
      const { customer_card_id: id, code } = input;
      const match = id === null ? matches.get(code ?? '') : { id, decoy: null };
      const path = match && paths.get(match.id);
      if (!path) return { error: new NotFoundError('Customer card') };
      try {
        if (input.operation === 'redeem') assertConfirmed(match);
        return { input, path };
      } catch (error) {
        if (error instanceof RejectedError) return { error };
        throw error;
      }
    });
  }

  private async executeOne(
    context: CommandContext,
    target: Target,
    endsAt: number,
    source: ActionSource | undefined,
  ): Promise<BatchResultJson> {
    try {
      if ('error' in target) throw target.error;
      if (performance.now() > endsAt) throw new UnavailableError('The database is too slow');
      const { body } = await this.commands.execute(createCommand(context, target, source));
      return { status: 200, body };
    } catch (error) {
      return renderOperationError(error, context.requestId, this.config.publicUrl);
    }
  }
}

function parseOperation(operation: unknown, timeZone: string | undefined): ParsedOperation {
  if (typeof operation !== 'object' || operation === null || Array.isArray(operation)) {
    return { error: new InvalidFieldsError({ base: [ISSUES.operation_not_object] }) };
  }
  try {
    const fields = operation as Record<string, unknown>;
    return { input: readFields(BatchOperationDto, fields, timeZone) };
  } catch (error) {
    if (error instanceof InvalidFieldsError) return { error };
    throw error;
  }
}

function getKeys(target: Target): string[] {
  if ('error' in target) return [];
  const { input, path } = target;
  return [`card ${path.id}`, `${input.operation} ${input.external_ref}`];
}

function createCommand(
  context: CommandContext,
  { input, path }: Exclude<Target, { error: Error }>,
  source: ActionSource = input.source,
): StampCustomerCard | RedeemReward {
  const details = { ...toActionDetails(input), source };
  return input.operation === 'stamp'
    ? new StampCustomerCard(context, path, { ...details, stamps: input.stamps ?? 0 })
    : new RedeemReward(context, path, { ...details, rewardId: input.reward_id ?? 0 });
}

function listCustomers(targets: Target[]): number[] {
  return [
    ...new Set(targets.flatMap((target) => ('path' in target ? [target.path.customerId] : []))),
  ];
}
