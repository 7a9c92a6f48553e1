import { Command, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import type { CommandContext, RecordedEvent } from '#kernel/aggregate.js';
import { toRecorded } from '#event-store/port/codec.js';
import { EventStore } from '#event-store/port/event-store.js';
import { CommandPipeline } from '#event-store/commands/handle-command.js';
import { toStreamName } from '#event-store/read-models/read-models.js';
import type { CardPath } from './card-holder.js';
import { carryOverAgain, countCarriedOver, type CarryOver } from './carry-over.js';
import { customerCard } from './customer-card.js';
import { loadCardTemplate } from './customer-card.commands.js';
import { customerCardReadModel } from './customer-card.entity.js';
import type { CustomerCardEvent } from './customer-card.events.js';
import { TemplatesService } from './templates.service.js';

/**
 * Carries stamps over to a card that exists. What it has got that way so far is read from its history, so the same
 * command again changes nothing, even if the process that gave it first was killed.
 * @returns whether the card has changed
 */
export class CarryStampsOver extends Command<boolean> {
  constructor(
    readonly context: CommandContext,
    readonly path: CardPath,
    readonly carryOver: CarryOver,
  ) {
    super();
  }
}

@CommandHandler(CarryStampsOver)
export class CarryStampsOverHandler implements ICommandHandler<CarryStampsOver> {
  constructor(
    private readonly pipeline: CommandPipeline,
    private readonly templates: TemplatesService,
    private readonly eventStore: EventStore,
  ) {}

  execute({ context, path, carryOver }: CarryStampsOver): Promise<boolean> {
    return this.pipeline.handleCommand({
      readModel: customerCardReadModel,
      id: path.id,
      context,
      load: async (loaded) => ({
        ...(await loadCardTemplate(this.templates, loaded, path, { locationId: null })),
        carriedOver: await this.count(path.id, loaded?.head.revision ?? -1),
      }),
      decide: (card, { template, carriedOver }) =>
        carryOverAgain(card, template, { customerId: path.customerId, ...carryOver, carriedOver }),
      respond: ({ events }) => events.length > 0,
    });
  }

  /** Counts up to the revision that is decided on. A later event makes the commit a conflict, and this runs again. */
  private async count(id: number, revision: number): Promise<number> {
    const visited = new Set<number>();
    const pending = [{ id, to: revision as number | undefined }];
    let sum = 0;
    for (let card = pending.pop(); card; card = pending.pop()) {
      if (visited.has(card.id)) continue;
      visited.add(card.id);
      const { stamps, absorbedIds } = countCarriedOver(await this.read(card.id, card.to));
      sum += stamps;
      pending.push(...absorbedIds.map((absorbed) => ({ id: absorbed, to: undefined })));
    }
    return sum;
  }

  private async read(
    id: number,
    to: number | undefined,
  ): Promise<RecordedEvent<CustomerCardEvent>[]> {
    const events: RecordedEvent<CustomerCardEvent>[] = [];
    const stream = toStreamName(customerCard, id);
    for await (const stored of this.eventStore.readStream(stream, to === undefined ? {} : { to })) {
      events.push(toRecorded<CustomerCardEvent>(customerCard, stored));
    }
    return events;
  }
}
