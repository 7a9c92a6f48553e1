import { Controller, Get, Param, Res } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import { NotFoundError } from '#platform/kernel/errors.js';
import { WalletBadges } from './wallet-badges.service.js';

/** An SVG that is opened by itself must not run anything. */
const POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox";

/** Serves the official buttons of the wallet vendors. */
@Controller('img/wallet-button')
export class WalletBadgesController {
  constructor(private readonly badges: WalletBadges) {}

  @Get(':file')
  async show(@Param('file') name: string, @Res() reply: FastifyReply): Promise<void> {
    const file = this.badges.findFile(name);
    if (!file) {
      reply.header('cache-control', 'no-store');
      throw new NotFoundError('Image');
    }
    await reply
      .type(file.type)
      .headers({
        'cache-control': 'public, max-age=31536000, immutable',
        'content-security-policy': POLICY,
        'x-content-type-options': 'nosniff',
      })
      .send(file.bytes);
  }
}
