import { Command, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import type { CommandContext } from '#platform/kernel/aggregate.js';
import { CommandPipeline } from '#platform/event-store/commands/handle-command.js';
import { ReadModels } from '#platform/event-store/read-models/read-models.js';
import type { CardPath } from './card-holder.js';
import { setImportedStamps, type StampImport } from './imported-stamps.js';
import type { CustomerCard } from './customer-card.js';
import { customerCardReadModel } from './customer-card.entity.js';
import { TemplatesService } from './templates.service.js';

/**
 * Sets the imported stamps of a card that exists. Its state says how many were imported so far, so the same command again
 * changes nothing, even if the process that gave it first was killed.
 * @returns whether the card has changed
 */
export class SetImportedStamps extends Command<boolean> {
  constructor(
    readonly context: CommandContext,
    readonly path: CardPath,
    readonly stampImport: StampImport,
  ) {
    super();
  }
}

@CommandHandler(SetImportedStamps)
export class SetImportedStampsHandler implements ICommandHandler<SetImportedStamps> {
  constructor(
    private readonly pipeline: CommandPipeline,
    private readonly templates: TemplatesService,
    private readonly readModels: ReadModels,
  ) {}

  execute({ context, path, stampImport }: SetImportedStamps): Promise<boolean> {
    return this.pipeline.handleCommand({
      readModel: customerCardReadModel,
      id: path.id,
      context,
      load: async (loaded) => ({
        ...(await this.templates.loadForAction(loaded, path, { locationId: null })),
        absorbedStamps: await countAbsorbedStamps(this.readModels, loaded?.state),
      }),
      decide: (card, { template, absorbedStamps }) =>
        setImportedStamps(card, template, {
          customerId: path.customerId,
          ...stampImport,
          absorbedStamps,
        }),
      respond: ({ events }) => events.length > 0,
    });
  }
}

/** Counts what the cards that were merged into a card have got. They do not change while they are merged. */
export async function countAbsorbedStamps(
  readModels: ReadModels,
  card: CustomerCard | undefined,
): Promise<number> {
  let sum = 0;
  for (const { fromId } of card?.absorptions ?? []) {
    const absorbed = (await readModels.loadCurrent(customerCardReadModel, fromId))?.state;
    sum += (absorbed?.importedStamps ?? 0) + (await countAbsorbedStamps(readModels, absorbed));
  }
  return sum;
}
