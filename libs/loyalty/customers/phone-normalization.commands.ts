import { Command, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import type { CommandContext } from '#platform/kernel/aggregate.js';
import { ClaimTakenError } from '#platform/event-store/port/event-store.js';
import { CommandPipeline } from '#platform/event-store/commands/handle-command.js';
import { PersonalKeys } from '#platform/event-store/personal-keys/personal-keys.js';
import { createClaimChanges } from './customer.commands.js';
import { customerReadModel } from './customer.entity.js';
import { normalizeCustomerPhone } from './phone-normalization.js';
import { StoreRegions } from './store-regions.service.js';

/**
 * Puts a customer's phone number into the form that it has in the store's country.
 * @returns whether it has that form now; not if another customer holds the number
 */
export class NormalizePhone extends Command<boolean> {
  constructor(
    readonly context: CommandContext,
    readonly id: number,
  ) {
    super();
  }
}

@CommandHandler(NormalizePhone)
export class NormalizePhoneHandler implements ICommandHandler<NormalizePhone> {
  constructor(
    private readonly pipeline: CommandPipeline,
    private readonly regions: StoreRegions,
    private readonly keys: PersonalKeys,
  ) {}

  async execute({ context, id }: NormalizePhone): Promise<boolean> {
    try {
      return await this.pipeline.handleCommand({
        readModel: customerReadModel,
        id,
        context,
        // There is nothing to do then, and nothing to refuse.
        evenErased: true,
        load: () => this.regions.get(context.accountId),
        decide: (state, region) => {
          const events = normalizeCustomerPhone(state, region);
          return { events, ...createClaimChanges(this.keys, context, id, state, events) };
        },
        respond: () => true,
      });
    } catch (error) {
      if (error instanceof ClaimTakenError) return false;
      throw error;
    }
  }
}
