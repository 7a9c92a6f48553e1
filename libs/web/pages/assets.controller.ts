import { Controller, Get, Param, Res } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import { NotFoundError } from '#platform/kernel/errors.js';
import { findAsset } from './assets.js';

/** Serves the style sheets, scripts and pictures of the pages. */
@Controller('assets')
export class AssetsController {
  @Get(':file')
  async show(@Param('file') file: string, @Res() reply: FastifyReply): Promise<void> {
    const match = findAsset(file);
    if (!match) throw new NotFoundError('File');
    await reply
      .type(match.asset.type)
      .header('cache-control', match.isCurrent ? 'public, max-age=31536000, immutable' : 'no-store')
      .send(match.asset.text);
  }
}
