import { Body, Controller, Delete, Get, Param, Patch, Post, Query } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import type { CommandContext } from '#platform/kernel/aggregate.js';
import { Context } from '#platform/http/caller.js';
import { DeclaresTag, Endpoint } from '#platform/http/endpoint.js';
import { Paged, PageReader } from '#platform/http/page.js';
import { parsePathId } from '#platform/http/path.js';
import { createRecordLookup } from '#platform/http/record.js';
import { CreateLocation, DeleteLocation, UpdateLocation } from './location.commands.js';
import {
  CreateLocationDto,
  LocationJson,
  LocationListQuery,
  UpdateLocationDto,
  toLocationAttributes,
} from './location.dto.js';
import { LocationsService } from './locations.service.js';

const LOCATION = createRecordLookup(LocationsService, (locations, accountId, { id = '' }) =>
  locations.get(accountId, parsePathId(id)),
);

@DeclaresTag({
  name: 'Locations',
  order: 70,
  description: 'The physical shops of a store. Their addresses are geocoded for the wallets.',
})
@Controller('/api/v1/accounts/:account_id/locations')
export class LocationsController {
  constructor(
    private readonly commands: CommandBus,
    private readonly locations: LocationsService,
  ) {}

  @Get()
  @Endpoint({
    id: 'listLocations',
    tag: 'Locations',
    summary: 'List locations',
    description: 'The locations of a store, by id.',
    path: ['account_id'],
    status: 200,
    response: [LocationJson],
    errors: [404, 422],
  })
  list(
    @Context() { accountId }: CommandContext,
    @Query() { updated_since: updatedSince, ...page }: LocationListQuery,
    @Paged() pages: PageReader,
  ): Promise<LocationJson[]> {
    return pages.getPage(
      page,
      (range) => this.locations.list(accountId, { ...range, updatedSince }),
      ({ id }) => [id],
    );
  }

  @Get(':id')
  @Endpoint({
    id: 'getLocation',
    tag: 'Locations',
    summary: 'Show a location',
    description: 'One location with its coordinates, once they are known.',
    path: ['account_id', 'id'],
    status: 200,
    response: LocationJson,
    errors: [404],
    record: LOCATION,
  })
  show(@Context() { accountId }: CommandContext, @Param('id') id: string): Promise<LocationJson> {
    return this.locations.get(accountId, parsePathId(id));
  }

  @Post()
  @Endpoint({
    id: 'createLocation',
    tag: 'Locations',
    summary: 'Create a location',
    description:
      'Its address is geocoded in the background; until then geocode_status is pending. A pin says where exactly the shop is, and nothing is geocoded. Sends location.created, and location.updated once there are coordinates.',
    path: ['account_id'],
    status: 201,
    response: LocationJson,
    errors: [404, 422],
    codes: ['limit_reached'],
  })
  async create(
    @Context() context: CommandContext,
    @Body() body: CreateLocationDto,
  ): Promise<LocationJson> {
    return this.commands.execute(new CreateLocation(context, toLocationAttributes(body)));
  }

  @Patch(':id')
  @Endpoint({
    id: 'updateLocation',
    tag: 'Locations',
    summary: 'Update a location',
    description:
      'Only the given fields change. A changed address clears the coordinates, those of a pin included, until it has been geocoded; a pin in the same request stays. Sends location.updated if something changes.',
    path: ['account_id', 'id'],
    status: 200,
    response: LocationJson,
    errors: [404, 422],
    record: LOCATION,
  })
  async update(
    @Context() context: CommandContext,
    @Param('id') path: string,
    @Body() body: UpdateLocationDto,
  ): Promise<LocationJson> {
    return this.commands.execute(
      new UpdateLocation(context, parsePathId(path), toLocationAttributes(body)),
    );
  }

  @Delete(':id')
  @Endpoint({
    id: 'deleteLocation',
    tag: 'Locations',
    summary: 'Delete a location',
    description: 'Events that happened there stay in the history. Sends location.deleted.',
    path: ['account_id', 'id'],
    status: 204,
    errors: [404],
    record: LOCATION,
  })
  async remove(@Context() context: CommandContext, @Param('id') id: string): Promise<void> {
    await this.commands.execute(new DeleteLocation(context, parsePathId(id)));
  }
}
