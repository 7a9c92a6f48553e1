import { Command, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import { Pool } from 'pg';
import type { CommandContext } from '#kernel/aggregate.js';
import { Config } from '#configuration/config.js';
import { withNewId } from '#database/ids.js';
import { CommandPipeline } from '#event-store/commands/handle-command.js';
import {
  createLocation,
  deleteLocation,
  geocodeLocation,
  updateLocation,
  type Geocoding,
  type LocationChanges,
  type NewLocation,
} from './location.js';
import { toLocationJson, type LocationJson } from './location.dto.js';
import { locationCap, locationReadModel } from './location.entity.js';

export class CreateLocation extends Command<LocationJson> {
  constructor(
    readonly context: CommandContext,
    readonly attributes: NewLocation,
  ) {
    super();
  }
}

@CommandHandler(CreateLocation)
export class CreateLocationHandler implements ICommandHandler<CreateLocation> {
  constructor(
    private readonly pipeline: CommandPipeline,
    private readonly pool: Pool,
    private readonly config: Config,
  ) {}

  async execute({ context, attributes }: CreateLocation): Promise<LocationJson> {
    return withNewId(this.pool, locationReadModel.table, (id) =>
      this.pipeline.handleCommand({
        readModel: locationReadModel,
        id,
        isNew: true,
        context,
        decide: () => ({
          events: createLocation(id, context.accountId, attributes),
          cap: {
            kind: locationCap,
            owner: context.accountId,
            id,
            max: this.config.quotas.locations,
          },
        }),
        respond: ({ state }) => toLocationJson(state),
      }),
    );
  }
}

export class UpdateLocation extends Command<LocationJson> {
  constructor(
    readonly context: CommandContext,
    readonly id: number,
    readonly changes: LocationChanges,
  ) {
    super();
  }
}

@CommandHandler(UpdateLocation)
export class UpdateLocationHandler implements ICommandHandler<UpdateLocation> {
  constructor(private readonly pipeline: CommandPipeline) {}

  async execute({ context, id, changes }: UpdateLocation): Promise<LocationJson> {
    return this.pipeline.handleCommand({
      readModel: locationReadModel,
      id,
      context,
      decide: (current) => updateLocation(current, changes),
      respond: ({ state }) => toLocationJson(state),
    });
  }
}

/** Records the result of a geocoder for an address, which may have changed meanwhile. */
export class RecordGeocoding extends Command<void> {
  constructor(
    readonly context: CommandContext,
    readonly id: number,
    readonly address: string,
    readonly result: Geocoding,
    readonly provider: string,
  ) {
    super();
  }
}

@CommandHandler(RecordGeocoding)
export class RecordGeocodingHandler implements ICommandHandler<RecordGeocoding> {
  constructor(private readonly pipeline: CommandPipeline) {}

  async execute({ context, id, address, result, provider }: RecordGeocoding): Promise<void> {
    await this.pipeline.handleCommand({
      readModel: locationReadModel,
      id,
      context,
      decide: (current) => geocodeLocation(current, address, result, provider),
      respond: () => undefined,
    });
  }
}

export class DeleteLocation extends Command<void> {
  constructor(
    readonly context: CommandContext,
    readonly id: number,
  ) {
    super();
  }
}

@CommandHandler(DeleteLocation)
export class DeleteLocationHandler implements ICommandHandler<DeleteLocation> {
  constructor(private readonly pipeline: CommandPipeline) {}

  async execute({ context, id }: DeleteLocation): Promise<void> {
    await this.pipeline.handleCommand({
      readModel: locationReadModel,
      id,
      context,
      decide: deleteLocation,
      respond: () => undefined,
    });
  }
}

export const locationHandlers = [
  CreateLocationHandler,
  UpdateLocationHandler,
  RecordGeocodingHandler,
  DeleteLocationHandler,
];
