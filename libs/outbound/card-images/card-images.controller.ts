import { Controller, Get, Param, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { NotFoundError } from '#platform/kernel/errors.js';
import { matchesEtag } from '#platform/http/headers.js';
import { STRIP_SIZES, type StripSize } from './strip-design.js';
import { isLogoSize, CardImages } from './card-images.service.js';

/** The ends of `toStripUrl`, `toLogoUrl`, `toDrawnLogoUrl` and `toStoreLogoUrl`. Any other spelling would be a second URL of the same image. */
const STRIP_FILE = /^(?<filled>0|[1-9]\d?)@(?<size>\w+)[.]png$/;
const LOGO_FILE = /^(?<hash>\w+)[.]png$/;
const PLAIN_FILE = /^(?<name>[\w@]+)[.]png$/;
const STORE_FILE = /^(?<picture>[0-9a-f]{64})[.]png$/;
const HASH = /^[0-9a-f]{32}$/;

/**
 * Serves images without a token: a hash cannot be guessed. They are not in the OpenAPI document, and have the rate
 * limit of pages.
 */
@Controller('img')
export class CardImagesController {
  constructor(private readonly images: CardImages) {}

  @Get('strip/:hash/:file')
  async strip(
    @Param('hash') hash: string,
    @Param('file') file: string,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const { filled = '', size = '' } = STRIP_FILE.exec(file)?.groups ?? {};
    if (!HASH.test(hash) || !isStripSize(size)) throw notFound(reply);
    await sendPng(request, reply, () => this.images.findPng(hash, Number(filled), size));
  }

  @Get('logo/:file')
  async logo(
    @Param('file') file: string,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const { hash = '' } = LOGO_FILE.exec(file)?.groups ?? {};
    if (!HASH.test(hash)) throw notFound(reply);
    await sendPng(request, reply, () => this.images.findIconPng(hash, 'program'));
  }

  @Get('brand/:hash/:file')
  async drawnLogo(
    @Param('hash') hash: string,
    @Param('file') file: string,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const { name = '' } = PLAIN_FILE.exec(file)?.groups ?? {};
    if (!HASH.test(hash) || !isLogoSize(name)) throw notFound(reply);
    await sendPng(request, reply, () => this.images.findLogoPng(hash, name));
  }

  @Get('store/:file')
  async storeLogo(
    @Param('file') file: string,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const { picture } = STORE_FILE.exec(file)?.groups ?? {};
    if (picture === undefined) throw notFound(reply);
    await sendPng(request, reply, () => this.images.findStoreLogo(picture));
  }
}

async function sendPng(
  request: FastifyRequest,
  reply: FastifyReply,
  findPng: () => Promise<Buffer | undefined>,
): Promise<void> {
  const png = await findPng();
  if (!png) throw notFound(reply);
  // The image of a URL never changes, so the URL itself is the ETag.
  const etag = `"${request.url.split('?', 1)[0]?.split('/').slice(3).join('/')}"`;
  reply.headers({
    'cache-control': 'public, max-age=31536000, immutable',
    // Other origins may embed it: e-mails, a store's own site.
    'cross-origin-resource-policy': 'cross-origin',
    etag,
  });
  if (matchesEtag(etag, request.headers['if-none-match'])) await reply.status(304).send();
  else await reply.type('image/png').send(png);
}

/** Creates a 404 that is not cached: the image may exist a moment later. */
function notFound(reply: FastifyReply): NotFoundError {
  reply.header('cache-control', 'no-store');
  return new NotFoundError('Image');
}

function isStripSize(size: string): size is StripSize {
  return Object.hasOwn(STRIP_SIZES, size);
}
