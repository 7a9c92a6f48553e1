import { Body, Controller, Delete, Get, Param, Patch, Post, Query } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import { z } from 'zod';
import type { CommandContext } from '#kernel/aggregate.js';
import { pathId, readBody, readQuery } from '#http/body.js';
import { Context } from '#http/caller.js';
import { Endpoint } from '#http/endpoint.js';
import { Paged, Pages } from '#http/page.js';
import { CreatePoster, DeletePoster, UpdatePoster } from './poster.commands.js';
import {
  createPosterDto,
  posterAnswer,
  posterAttributes,
  posterListQuery,
  updatePosterDto,
  type PosterJson,
} from './poster.dto.js';
import { PostersService } from './posters.service.js';

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
    summary: "A store's posters, by id",
    path: ['account_id'],
    query: posterListQuery,
    status: 200,
    answer: z.array(posterAnswer),
    errors: [404, 422],
  })
  list(
    @Context() { accountId }: CommandContext,
    @Query() given: unknown,
    @Paged() pages: Pages,
  ): Promise<PosterJson[]> {
    const { card_id: cardId, active, ...page } = readQuery(posterListQuery, given);
    return pages.answer(
      page,
      (range) => this.posters.list(accountId, { cardId, active }, range),
      ({ id }) => [id],
    );
  }

  @Get(':id')
  @Endpoint({
    id: 'getPoster',
    tag: 'Posters',
    summary: 'One poster',
    path: ['account_id', 'id'],
    status: 200,
    answer: posterAnswer,
    errors: [404],
  })
  show(@Context() { accountId }: CommandContext, @Param('id') id: string): Promise<PosterJson> {
    return this.posters.find(accountId, pathId(id));
  }

  @Post()
  @Endpoint({
    id: 'createPoster',
    tag: 'Posters',
    summary: 'Make a poster for a card',
    description: "The card's name and colours are copied: changing the card later leaves it alone.",
    path: ['account_id'],
    body: createPosterDto,
    wrapper: 'poster',
    status: 201,
    answer: posterAnswer,
    errors: [404, 422],
  })
  async create(@Context() context: CommandContext, @Body() body: unknown): Promise<PosterJson> {
    const input = await readBody(createPosterDto, body, {
      wrapper: 'poster',
      bare: Object.keys(createPosterDto.shape),
    });
    return this.commands.execute(new CreatePoster(context, input.card_id, posterAttributes(input)));
  }

  @Patch(':id')
  @Endpoint({
    id: 'updatePoster',
    tag: 'Posters',
    summary: 'Change what is named',
    description:
      'The result is what has to be consistent. With a mode that collects one contact, that one is required and the other is not; asking for anything else is refused. Back with both, what was required stays so.',
    path: ['account_id', 'id'],
    body: updatePosterDto,
    wrapper: 'poster',
    status: 200,
    answer: posterAnswer,
    errors: [404, 422],
  })
  async update(
    @Context() context: CommandContext,
    @Param('id') path: string,
    @Body() body: unknown,
  ): Promise<PosterJson> {
    const id = pathId(path);
    const input = await readBody(updatePosterDto, body, {
      wrapper: 'poster',
      bare: Object.keys(createPosterDto.shape),
      record: () => this.posters.find(context.accountId, id),
    });
    return this.commands.execute(new UpdatePoster(context, id, posterAttributes(input)));
  }

  @Delete(':id')
  @Endpoint({
    id: 'deletePoster',
    tag: 'Posters',
    summary: 'Take a poster down: its signup URL ends',
    path: ['account_id', 'id'],
    status: 204,
    errors: [404],
  })
  async remove(@Context() context: CommandContext, @Param('id') id: string): Promise<void> {
    await this.commands.execute(new DeletePoster(context, pathId(id)));
  }
}
