import { Body, Controller, Delete, Get, Param, Patch, Post, Query } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import type { CommandContext } from '#platform/kernel/aggregate.js';
import { Context } from '#platform/http/caller.js';
import { DeclaresTag, Endpoint } from '#platform/http/endpoint.js';
import { Paged, PageReader } from '#platform/http/page.js';
import { parsePathId } from '#platform/http/path.js';
import { createRecordLookup } from '#platform/http/record.js';
import { RewardListQuery } from '#loyalty/rewards/reward.dto.js';
import { CreatePoster, DeletePoster, UpdatePoster } from './poster.commands.js';
import { CreatePosterDto, PosterJson, UpdatePosterDto, toPosterAttributes } from './poster.dto.js';
import { PostersService } from './posters.service.js';

const POSTER = createRecordLookup(PostersService, (posters, accountId, { id = '' }) =>
  posters.get(accountId, parsePathId(id)),
);

@DeclaresTag({
  name: 'Posters',
  order: 80,
  description: 'Printed signup posters, each with a public signup URL.',
})
@Controller('/api/v1/accounts/:account_id/posters')
export class PostersController {
  constructor(
    private readonly commands: CommandBus,
    private readonly posters: PostersService,
  ) {}

  @Get()
  @Endpoint({
    id: 'listPosters',
    tag: 'Posters',
    summary: 'List posters',
    description: 'The signup posters of a store, by id.',
    path: ['account_id'],
    status: 200,
    response: [PosterJson],
    errors: [404, 422],
  })
  list(
    @Context() { accountId }: CommandContext,
    // The same filters and pages as for rewards.
    @Query() { card_id: cardId, active, updated_since, ...page }: RewardListQuery,
    @Paged() pages: PageReader,
  ): Promise<PosterJson[]> {
    return pages.getPage(
      page,
      (range) =>
        this.posters.list(accountId, { cardId, active, updatedSince: updated_since }, range),
      ({ id }) => [id],
    );
  }

  @Get(':id')
  @Endpoint({
    id: 'getPoster',
    tag: 'Posters',
    summary: 'Show a poster',
    description: 'One poster with its public addresses.',
    path: ['account_id', 'id'],
    status: 200,
    response: PosterJson,
    errors: [404],
    record: POSTER,
  })
  show(@Context() { accountId }: CommandContext, @Param('id') id: string): Promise<PosterJson> {
    return this.posters.get(accountId, parsePathId(id));
  }

  @Post()
  @Endpoint({
    id: 'createPoster',
    tag: 'Posters',
    summary: 'Create a poster',
    description:
      "The card's name and colours are copied; later changes to the card do not affect the poster. Sends poster.created.",
    path: ['account_id'],
    status: 201,
    response: PosterJson,
    errors: [404, 422],
    codes: ['limit_reached'],
  })
  async create(
    @Context() context: CommandContext,
    @Body() body: CreatePosterDto,
  ): Promise<PosterJson> {
    return this.commands.execute(new CreatePoster(context, toPosterAttributes(body)));
  }

  @Patch(':id')
  @Endpoint({
    id: 'updatePoster',
    tag: 'Posters',
    summary: 'Update a poster',
    description:
      'Only the given fields change. The fields must be consistent after the change. A mode that collects one contact requires that one and not the other, and anything else is refused. After a change back to both, what was required stays required. Sends poster.updated if something changes.',
    path: ['account_id', 'id'],
    status: 200,
    response: PosterJson,
    errors: [404, 422],
    record: POSTER,
  })
  async update(
    @Context() context: CommandContext,
    @Param('id') path: string,
    @Body() body: UpdatePosterDto,
  ): Promise<PosterJson> {
    return this.commands.execute(
      new UpdatePoster(context, parsePathId(path), toPosterAttributes(body)),
    );
  }

  @Delete(':id')
  @Endpoint({
    id: 'deletePoster',
    tag: 'Posters',
    summary: 'Delete a poster',
    description: 'Its signup URL stops working. Sends poster.deleted.',
    path: ['account_id', 'id'],
    status: 204,
    errors: [404],
    record: POSTER,
  })
  async remove(@Context() context: CommandContext, @Param('id') id: string): Promise<void> {
    await this.commands.execute(new DeletePoster(context, parsePathId(id)));
  }
}
