import { Logger } from '@nestjs/common';
import { Command, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import { Pool } from 'pg';
import type { CommandContext } from '#platform/kernel/aggregate.js';
import { NotFoundError } from '#platform/kernel/errors.js';
import { query } from '#platform/database/connection.js';
import { createEraseStatement } from '#platform/event-store/personal-keys/erase-statement.js';
import { ErasureWatch } from '#platform/event-store/personal-keys/erasure-watch.service.js';
import { CommandPipeline } from '#platform/event-store/commands/handle-command.js';
import { PersonalKeys } from '#platform/event-store/personal-keys/personal-keys.js';
import { ReadModels, toStreamName } from '#platform/event-store/read-models/read-models.js';
import {
  toStreamDecision,
  toStreamRef,
  MultiStreamCommands,
} from '#platform/event-store/commands/multi-stream-commands.js';
import { customer, eraseCustomer, listUniqueValues, type Customer } from './customer.js';
import { customerReadModel } from './customer.entity.js';
import { loadPerson } from './one-person.js';
import { resealCustomer } from './resealing.js';

/**
 * Destroys what is personal about a customer; the history and every total stay. Customers who were merged are one
 * person, so all of them are erased. Doing so again changes nothing.
 */
export class EraseCustomer extends Command<void> {
  constructor(
    readonly context: CommandContext,
    readonly id: number,
  ) {
    super();
  }
}

/** @property holders customers who may have had values of these, because they were merged with them once */
type Group = { ids: number[]; holders: number[] };

/** Ends the command when there is nothing left to decide. */
class AlreadyErasedError extends Error {
  constructor(readonly group: Group) {
    super('erased already');
  }
}

@CommandHandler(EraseCustomer)
export class EraseCustomerHandler implements ICommandHandler<EraseCustomer> {
  private readonly log = new Logger('customers');

  constructor(
    private readonly severalStreams: MultiStreamCommands,
    private readonly pipeline: CommandPipeline,
    private readonly readModels: ReadModels,
    private readonly keys: PersonalKeys,
    private readonly watch: ErasureWatch,
    private readonly pool: Pool,
  ) {}

  async execute({ context, id }: EraseCustomer): Promise<void> {
    const { accountId } = context;
    // The response is stored when it is sent, not in the commit: before that, processes may still use what they hold.
    const { keyed: _, ...unkeyed } = context;
    const { ids, holders } = await this.erase(unkeyed, id);
    for (const erased of ids) {
      // For an operator who has to repeat it after a restore.
      this.log.log('customer erased', { account_id: accountId, customer_id: erased });
    }
    await this.watch.forgetEverywhere([...ids, ...holders]);
  }

  private async erase(context: CommandContext, id: number): Promise<Group> {
    let group: Group = { ids: [], holders: [] };
    try {
      await this.severalStreams.handle<Group, undefined>({
        context,
        load: async () => {
          const all = await loadPerson(id, (customerId) =>
            this.load(context.accountId, customerId),
          );
          const ids = all.map((customer) => customer.id);
          group = { ids, holders: await this.renewKeysOfHolders(context, ids) };
          return {
            ...group,
            streams: group.ids.map((customerId) => toStreamRef(customerReadModel, customerId)),
          };
        },
        decide: (stateOf, { ids }) => {
          const parts = ids
            .map((customerId) =>
              toStreamDecision(
                customerReadModel,
                customerId,
                eraseCustomer(stateOf(customerReadModel, customerId)),
              ),
            )
            .filter(({ events }) => events.length > 0);
          if (parts.length === 0) throw new AlreadyErasedError(group);
          return { streamDecisions: parts, erasures: ids.map(createErasure) };
        },
        respond: () => undefined,
        retriedKinds: [],
      });
      return group;
    } catch (error) {
      if (!(error instanceof AlreadyErasedError)) throw error;
      // A database that was restored may have the key again, of somebody whom the history knows to be erased.
      await query(
        this.pool,
        createEraseStatement(context.accountId, error.group.ids.map(createErasure)),
      );
      return error.group;
    }
  }

  /**
   * Renews the keys of customers who had values of these before they were unmerged. Their history has these values for
   * good, sealed with their own key. Before the erasure, which ends all that could tell who they are. What they say
   * themselves from then on holds nothing of these customers, unless they are merged again, and then the erasure loses
   * its race and comes back to here.
   * @returns all customers who may have had values of these
   */
  private async renewKeysOfHolders(context: CommandContext, ids: number[]): Promise<number[]> {
    const holders: Customer[] = [];
    const subjectIds = [...ids];
    // The loop appends to the list that it iterates over: they may have been merged in turn.
    for (const subjectId of subjectIds) {
      const { formerlyIn = [] } = await this.load(context.accountId, subjectId);
      for (const next of formerlyIn.filter((id) => !subjectIds.includes(id))) {
        subjectIds.push(next);
        const holder = await this.load(context.accountId, next);
        const holds = holder.holds?.some((id) => subjectIds.includes(id)) === true;
        if (holds && holder.erasedAt === null) holders.push(holder);
      }
    }
    for (let remaining = holders.map(({ id }) => id); remaining.length > 0;) {
      const renewed = await this.keys.renew(context.accountId, remaining);
      await Promise.all(remaining.map((id) => this.reseal(context, id)));
      // They may have been merged with these customers after that other key was made, and sealed with it what they
      // held.
      remaining = renewed;
    }
    return subjectIds.slice(ids.length);
  }

  private async reseal(context: CommandContext, id: number): Promise<void> {
    const stream = toStreamName(customer, id);
    await this.pipeline.handleCommand({
      readModel: customerReadModel,
      id,
      context,
      evenErased: true,
      load: () => Promise.resolve(undefined),
      decide: (state) => {
        const events = resealCustomer(state);
        if (!state || events.length === 0) return events;
        const claims = listUniqueValues(state).map(({ kind, value }) =>
          this.keys.createClaim(context.accountId, kind, value, stream),
        );
        // Taken by this event from now on, because those before it do not say any more what they took.
        return {
          events,
          releases: claims,
          claims,
          erasures: [{ ...createErasure(id), renewed: true }],
        };
      },
      respond: () => undefined,
    });
    this.keys.forget([id], performance.now());
  }

  /** @throws NotFoundError */
  private async load(accountId: number, id: number): Promise<Customer> {
    const loaded = await this.readModels.loadCurrent(customerReadModel, id);
    if (loaded?.state.accountId !== accountId) throw new NotFoundError('Customer');
    return loaded.state;
  }
}

const createErasure = (customerId: number) => ({
  subjectId: customerId,
  stream: toStreamName(customer, customerId),
});
