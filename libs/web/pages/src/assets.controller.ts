import { Controller, Get, Param, Res } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import { NotFoundError } from '#kernel/errors.js';
import { findAsset } from './assets.js';

/** Style, scripts and pictures of the pages. */
@Controller('assets')
export class AssetsController {
  @Get(':file')
  async show(@Param('file') file: string, @Res() reply: FastifyReply): Promise<void> {
    const found = findAsset(file);
    if (!found) throw new NotFoundError('File');
    await reply
      .type(found.asset.type)
      .header('cache-control', found.current ? 'public, max-age=31536000, immutable' : 'no-store')
      .send(found.asset.text);
  }
}
