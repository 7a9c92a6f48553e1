import { Controller, Get, Param, Query, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Config } from '#kernel/config.js';
import { NotFoundError } from '#kernel/errors.js';
import { isKnown } from '#http/headers.js';
import { Throttle } from '#http/throttle.js';
import { rootOf } from '#pages/page.js';
import { Pages } from '#pages/pages.service.js';
import { viewOf } from '#pages/view.js';
import { isPaperSize } from './paper.js';
import { PosterDocuments, type FoundPoster, type Sheet } from './poster-documents.service.js';
import { posterView, type PosterView } from './poster-view.js';

const view = viewOf<PosterView>(import.meta.url, './views/poster.eta');

/** Per minute and address, for each kind of document: what is not kept any more has to be drawn. */
const LIMITED = { default: { limit: 60, ttl: 60_000 } };

const TYPES = { pdf: 'application/pdf', png: 'image/png' } as const;

type Asked = Record<string, unknown>;

/** Posters for anybody who has the link, which hangs on the wall anyway. */
@Controller('posters')
export class PosterPagesController {
  constructor(
    private readonly documents: PosterDocuments,
    private readonly pages: Pages,
    private readonly config: Config,
  ) {}

  @Get(':slug')
  @Throttle(LIMITED)
  async show(@Param('slug') slug: string, @Res() reply: FastifyReply): Promise<void> {
    const found = await this.known(slug);
    const { poster, content } = found;
    const sheet = { format: 'svg', paperSize: poster.paperSize, bleed: false } as const;
    const svg = (await this.documents.document(found, sheet)).toString();
    const data = posterView({ ...found, svg, root: rootOf(this.config) });
    await this.pages.sendPublic(reply, {
      view,
      title: `${content.title} · ${content.storeName}`,
      lang: content.lang,
      data,
    });
  }

  @Get(':slug.pdf')
  @Throttle(LIMITED)
  async pdf(
    @Param('slug') slug: string,
    @Query() asked: Asked,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    await this.send('pdf', await this.known(slug), asked, request, reply);
  }

  @Get(':slug.png')
  @Throttle(LIMITED)
  async png(
    @Param('slug') slug: string,
    @Query() asked: Asked,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    await this.send('png', await this.known(slug), asked, request, reply);
  }

  private async send(
    format: keyof typeof TYPES,
    found: FoundPoster,
    asked: Asked,
    request: FastifyRequest,
    reply: FastifyReply,
  ): Promise<void> {
    const sheet = { format, ...sheetOf(found, asked) };
    const etag = `"${this.documents.hashOf(found, sheet)}"`;
    reply.headers({ etag, 'cache-control': 'public, no-cache', 'x-robots-tag': 'noindex' });
    if (isKnown(etag, request.headers['if-none-match'])) {
      await reply.status(304).send();
      return;
    }
    const bytes = await this.documents.document(found, sheet);
    await reply
      .type(TYPES[format])
      .header('content-disposition', `inline; filename="poster-${sheet.paperSize}.${format}"`)
      .send(bytes);
  }

  private async known(slug: string): Promise<FoundPoster> {
    const found = await this.documents.find(slug);
    if (!found) throw new NotFoundError('Poster');
    return found;
  }
}

function sheetOf({ poster }: FoundPoster, asked: Asked): Omit<Sheet, 'format'> {
  const { paper_size: paperSize = poster.paperSize, bleed = 'false' } = asked;
  const known = typeof paperSize === 'string' && isPaperSize(paperSize);
  if (!known || (bleed !== 'true' && bleed !== 'false')) throw new NotFoundError('Poster');
  return { paperSize, bleed: bleed === 'true' };
}
