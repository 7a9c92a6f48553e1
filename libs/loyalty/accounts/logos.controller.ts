import { Controller, Delete, Put, Query, Req } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import type { FastifyRequest } from 'fastify';
import type { CommandContext } from '#platform/kernel/aggregate.js';
import { Authenticated, Context, type Caller } from '#platform/http/caller.js';
import { Endpoint } from '#platform/http/endpoint.js';
import { getPicture, TakesPicture } from '#platform/http/body-kinds.js';
import { LOGO, UploadedPictures, WHOLE_LOGO } from '#loyalty/cards/uploaded-pictures.service.js';
import { RemoveLogo, SetLogo } from './account.commands.js';
import { AccountJson, LogoQuery } from './account.dto.js';

@Controller('/api/v1/accounts/:account_id/logo')
export class LogosController {
  constructor(
    private readonly commands: CommandBus,
    private readonly pictures: UploadedPictures,
  ) {}

  @Put()
  @TakesPicture()
  @Endpoint({
    id: 'setLogo',
    tag: 'Stores',
    summary: 'Upload the logo of a store',
    description:
      'It is shown on passes, cards, the signup page, posters and messages from now on. A transparent or white margin around it is cut off, unless `keep_margin` is true. It is turned upright, made to fit into 1200 by 600 pixels, and stored without the data that cameras add; transparent parts stay so. Sends store.updated.',
    path: ['account_id'],
    picture:
      'The picture itself: PNG, JPEG or WebP, at most 2 MiB and 25 megapixels. Its own media type is accepted too, such as image/png.',
    status: 200,
    response: AccountJson,
    errors: [404, 422],
  })
  async set(
    @Authenticated() { principalId: userId }: Caller,
    @Context() context: CommandContext,
    @Query() { keep_margin: isWhole }: LogoQuery,
    @Req() request: FastifyRequest,
  ): Promise<AccountJson> {
    const use = isWhole ? WHOLE_LOGO : LOGO;
    const picture = await this.pictures.store(context.accountId, ...getPicture(request), use);
    return this.commands.execute(new SetLogo(context, userId, picture));
  }

  @Delete()
  @Endpoint({
    id: 'removeLogo',
    tag: 'Stores',
    summary: 'Remove the logo of a store',
    description:
      'The stamp icon stands in its place again. Sends store.updated if there was a logo.',
    path: ['account_id'],
    status: 200,
    response: AccountJson,
    errors: [404],
  })
  async remove(
    @Authenticated() { principalId: userId }: Caller,
    @Context() context: CommandContext,
  ): Promise<AccountJson> {
    return this.commands.execute(new RemoveLogo(context, userId));
  }
}
