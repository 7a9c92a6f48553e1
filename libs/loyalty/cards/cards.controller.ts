import { Body, Controller, Get, Param, Patch, Post, Put, Query, Req } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import type { FastifyRequest } from 'fastify';
import type { CommandContext } from '#platform/kernel/aggregate.js';
import { AsOfQuery } from '#platform/http/as-of.js';
import { Context } from '#platform/http/caller.js';
import { DeclaresTag, Endpoint } from '#platform/http/endpoint.js';
import { Paged, PageReader } from '#platform/http/page.js';
import { parsePathId } from '#platform/http/path.js';
import { getPicture, TakesPicture } from '#platform/http/body-kinds.js';
import { createRecordLookup } from '#platform/http/record.js';
import {
  ArchiveCard,
  CreateCard,
  SetStripImage,
  UnarchiveCard,
  UpdateCard,
} from './card.commands.js';
import {
  CardJson,
  CardListQuery,
  CreateCardDto,
  UpdateCardDto,
  toCardAttributes,
} from './card.dto.js';
import { CardsService } from './cards.service.js';
import { UploadedPictures } from './uploaded-pictures.service.js';

const CARD = createRecordLookup(CardsService, (cards, accountId, { id = '' }) =>
  cards.get(accountId, parsePathId(id)),
);

@DeclaresTag({
  name: 'Cards',
  order: 30,
  description: 'Templates of stamp cards: their looks, and how many stamps fill them.',
})
@Controller('/api/v1/accounts/:account_id/cards')
export class CardsController {
  constructor(
    private readonly commands: CommandBus,
    private readonly cards: CardsService,
    private readonly pictures: UploadedPictures,
  ) {}

  @Get()
  @Endpoint({
    id: 'listCards',
    tag: 'Cards',
    summary: 'List cards',
    description:
      'The card templates of a store, by id; archived ones only when scope asks for them.',
    path: ['account_id'],
    status: 200,
    response: [CardJson],
    errors: [404, 422],
  })
  async list(
    @Context() { accountId }: CommandContext,
    @Query() { scope, updated_since: updatedSince, as_of: time, ...page }: CardListQuery,
    @Paged() pages: PageReader,
  ): Promise<CardJson[]> {
    const filter = { scope, updatedSince };
    const key = ({ id }: CardJson) => [id];
    return time === null
      ? pages.getPage(page, (range) => this.cards.list(accountId, filter, range), key)
      : pages.getPageFrom(page, await this.cards.listPast(accountId, filter, time), key);
  }

  @Get(':id')
  @Endpoint({
    id: 'getCard',
    tag: 'Cards',
    summary: 'Show a card',
    description: 'One card template, archived or not.',
    path: ['account_id', 'id'],
    status: 200,
    response: CardJson,
    errors: [404, 422],
    record: CARD,
  })
  async show(
    @Context() { accountId }: CommandContext,
    @Param('id') path: string,
    @Query() { as_of: time }: AsOfQuery,
  ): Promise<CardJson> {
    const id = parsePathId(path);
    return time === null ? this.cards.get(accountId, id) : this.cards.getPast(accountId, id, time);
  }

  @Post()
  @Endpoint({
    id: 'createCard',
    tag: 'Cards',
    summary: 'Create a card',
    description: 'A template, of which each customer gets a card of their own. Sends card.created.',
    path: ['account_id'],
    status: 201,
    response: CardJson,
    errors: [404, 422],
    codes: ['limit_reached'],
  })
  async create(@Context() context: CommandContext, @Body() body: CreateCardDto): Promise<CardJson> {
    return this.commands.execute(new CreateCard(context, toCardAttributes(body)));
  }

  @Patch(':id')
  @Endpoint({
    id: 'updateCard',
    tag: 'Cards',
    summary: 'Update a card',
    description: 'Only the given fields change. Sends card.updated if one does.',
    path: ['account_id', 'id'],
    status: 200,
    response: CardJson,
    errors: [404, 422],
    record: CARD,
  })
  async update(
    @Context() context: CommandContext,
    @Param('id') path: string,
    @Body() body: UpdateCardDto,
  ): Promise<CardJson> {
    return this.commands.execute(
      new UpdateCard(context, parsePathId(path), toCardAttributes(body)),
    );
  }

  @Put(':id/strip_image')
  @TakesPicture()
  @Endpoint({
    id: 'setCardStripImage',
    tag: 'Cards',
    summary: 'Upload the picture of a card’s strip',
    description:
      'The strip shows it from now on: `strip_type` becomes image. It is turned upright, cut to 1125 by 432 pixels around its centre, and stored without the data that cameras add. Of an animation the first frame is taken. Sends card.updated.',
    path: ['account_id', 'id'],
    picture:
      'The picture itself: PNG, JPEG or WebP, at most 2 MiB and 25 megapixels. Its own media type is accepted too, such as image/png.',
    status: 200,
    response: CardJson,
    errors: [404],
    codes: ['limit_reached'],
    record: CARD,
  })
  async setStripImage(
    @Context() context: CommandContext,
    @Param('id') path: string,
    @Req() request: FastifyRequest,
  ): Promise<CardJson> {
    const id = parsePathId(path);
    await this.cards.get(context.accountId, id);
    const picture = await this.pictures.store(context.accountId, ...getPicture(request));
    return this.commands.execute(new SetStripImage(context, id, picture));
  }

  @Post(':id/archive')
  @Endpoint({
    id: 'archiveCard',
    tag: 'Cards',
    summary: 'Archive a card',
    description: 'It is hidden from the list; customers who have it keep it. Sends card.archived.',
    path: ['account_id', 'id'],
    status: 200,
    response: CardJson,
    errors: [404],
    record: CARD,
  })
  async archive(@Context() context: CommandContext, @Param('id') id: string): Promise<CardJson> {
    return this.commands.execute(new ArchiveCard(context, parsePathId(id)));
  }

  @Post(':id/unarchive')
  @Endpoint({
    id: 'unarchiveCard',
    tag: 'Cards',
    summary: 'Take a card out of the archive',
    description: 'It stands in the list again. Sends card.unarchived.',
    path: ['account_id', 'id'],
    status: 200,
    response: CardJson,
    errors: [404],
    record: CARD,
  })
  async unarchive(@Context() context: CommandContext, @Param('id') id: string): Promise<CardJson> {
    return this.commands.execute(new UnarchiveCard(context, parsePathId(id)));
  }
}
