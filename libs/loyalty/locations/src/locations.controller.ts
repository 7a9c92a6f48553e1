import { Body, Controller, Delete, Get, Param, Patch, Post, Query } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import { z } from 'zod';
import type { CommandContext } from '#kernel/aggregate.js';
import { pathId, readBody, readQuery } from '#http/body.js';
import { Context } from '#http/caller.js';
import { Endpoint } from '#http/endpoint.js';
import { Paged, pageQuery, Pages } from '#http/page.js';
import { CreateLocation, DeleteLocation, UpdateLocation } from './location.commands.js';
import {
  createLocationDto,
  locationAnswer,
  updateLocationDto,
  type LocationJson,
} from './location.dto.js';
import { LocationsService } from './locations.service.js';

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
    summary: "A store's locations, by id",
    path: ['account_id'],
    query: pageQuery,
    status: 200,
    answer: z.array(locationAnswer),
    errors: [404, 422],
  })
  list(
    @Context() { accountId }: CommandContext,
    @Query() given: unknown,
    @Paged() pages: Pages,
  ): Promise<LocationJson[]> {
    return pages.answer(
      readQuery(pageQuery, given),
      (range) => this.locations.list(accountId, range),
      ({ id }) => [id],
    );
  }

  @Get(':id')
  @Endpoint({
    id: 'getLocation',
    tag: 'Locations',
    summary: 'One location',
    path: ['account_id', 'id'],
    status: 200,
    answer: locationAnswer,
    errors: [404],
  })
  show(@Context() { accountId }: CommandContext, @Param('id') id: string): Promise<LocationJson> {
    return this.locations.find(accountId, pathId(id));
  }

  @Post()
  @Endpoint({
    id: 'createLocation',
    tag: 'Locations',
    summary: 'Add a location',
    description: 'Its coordinates are looked up in the background: geocode_status is pending.',
    path: ['account_id'],
    body: createLocationDto,
    wrapper: 'location',
    status: 201,
    answer: locationAnswer,
    errors: [404, 422],
  })
  async create(@Context() context: CommandContext, @Body() body: unknown): Promise<LocationJson> {
    const { name, address } = await readBody(createLocationDto, body, {
      wrapper: 'location',
      bare: Object.keys(createLocationDto.shape),
    });
    return this.commands.execute(new CreateLocation(context, { name, address }));
  }

  @Patch(':id')
  @Endpoint({
    id: 'updateLocation',
    tag: 'Locations',
    summary: 'Change what is named',
    description: 'A changed address takes the coordinates away until it has been looked up.',
    path: ['account_id', 'id'],
    body: updateLocationDto,
    wrapper: 'location',
    status: 200,
    answer: locationAnswer,
    errors: [404, 422],
  })
  async update(
    @Context() context: CommandContext,
    @Param('id') path: string,
    @Body() body: unknown,
  ): Promise<LocationJson> {
    const id = pathId(path);
    const { name, address } = await readBody(updateLocationDto, body, {
      wrapper: 'location',
      bare: Object.keys(updateLocationDto.shape),
      record: () => this.locations.find(context.accountId, id),
    });
    const changes = {
      ...(name !== undefined && { name }),
      ...(address !== undefined && { address }),
    };
    return this.commands.execute(new UpdateLocation(context, id, changes));
  }

  @Delete(':id')
  @Endpoint({
    id: 'deleteLocation',
    tag: 'Locations',
    summary: 'Remove a location; what happened there stays on record',
    path: ['account_id', 'id'],
    status: 204,
    errors: [404],
  })
  async remove(@Context() context: CommandContext, @Param('id') id: string): Promise<void> {
    await this.commands.execute(new DeleteLocation(context, pathId(id)));
  }
}
