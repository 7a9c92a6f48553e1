import { Logger } from '@nestjs/common';
import { Command, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import { Pool } from 'pg';
import type { CommandContext } from '#kernel/aggregate.js';
import { NotFoundError } from '#kernel/errors.js';
import { ask } from '#database/connection.js';
import { erase as eraseStatement } from '#event-store/commit-arguments.js';
import { PersonalKeys } from '#event-store/personal-keys.js';
import { Rows, streamOf } from '#event-store/rows.js';
import { part, participant, SeveralStreams } from '#event-store/several-streams.js';
import { customer, eraseCustomer, type Customer } from './customer.js';
import { customerRows } from './customer.entity.js';

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

type Group = { ids: number[] };

/** Nothing is left to be decided. */
class ErasedAlready extends Error {
  constructor(readonly group: Group) {
    super('erased already');
  }
}

@CommandHandler(EraseCustomer)
export class EraseCustomerHandler implements ICommandHandler<EraseCustomer> {
  private readonly log = new Logger('customers');

  constructor(
    private readonly severalStreams: SeveralStreams,
    private readonly rows: Rows,
    private readonly keys: PersonalKeys,
    private readonly pool: Pool,
  ) {}

  async execute({ context, id }: EraseCustomer): Promise<void> {
    const { accountId } = context;
    const { ids } = await this.erase(context, id);
    for (const erased of ids) {
      this.keys.forget(erased);
      // For whoever has to repeat it after a restore.
      this.log.log('customer erased', { account_id: accountId, customer_id: erased });
    }
  }

  private async erase(context: CommandContext, id: number): Promise<Group> {
    let group: Group = { ids: [] };
    try {
      await this.severalStreams.handle<Group, undefined>({
        context,
        given: async () => {
          group = { ids: await this.merged(context, id) };
          return { ...group, participants: group.ids.map((one) => participant(customerRows, one)) };
        },
        decide: (stateOf, { ids }) => {
          const parts = ids
            .map((one) => part(customerRows, one, eraseCustomer(stateOf(customerRows, one))))
            .filter(({ events }) => events.length > 0);
          if (parts.length === 0) throw new ErasedAlready({ ids });
          return { parts, erasures: ids.map(erasureOf) };
        },
        answer: () => undefined,
        racing: [],
      });
      return group;
    } catch (error) {
      if (!(error instanceof ErasedAlready)) throw error;
      // A database that was restored may have the key again, of somebody whom the history knows to be erased.
      await ask(this.pool, eraseStatement(context.accountId, error.group.ids.map(erasureOf)));
      return error.group;
    }
  }

  /** The customer, and those whom merges join with them. @throws NotFoundError */
  private async merged({ accountId }: CommandContext, id: number): Promise<number[]> {
    const load = async (one: number): Promise<Customer> => {
      const loaded = await this.rows.load(customerRows, one, true);
      if (loaded?.state.accountId !== accountId) throw new NotFoundError('Customer');
      return loaded.state;
    };
    let root = await load(id);
    while (root.mergedInto) root = await load(root.mergedInto.customerId);
    const ids = [root.id];
    // Grows while it is gone through.
    for (const one of ids) {
      const { merges = [] } = one === root.id ? root : await load(one);
      ids.push(...merges.map(({ customerId }) => customerId));
    }
    return ids;
  }
}

const erasureOf = (customerId: number) => ({
  customerId,
  stream: streamOf(customer, customerId),
});
