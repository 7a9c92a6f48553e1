import { Controller, Get, Param, Query, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Config } from '#configuration/config.js';
import { NotFoundError } from '#platform/kernel/errors.js';
import { matchesEtag } from '#platform/http/headers.js';
import { Throttle } from '#platform/http/throttle.js';
import { getRootPath } from '#web/pages/page.js';
import { loadView } from '#web/pages/view.js';
import { type PageResult, showPublicPage } from '#web/pages/page-results.js';
import { isPaperSize } from './paper.js';
import { PosterDocuments, type PublishedPoster, type Sheet } from './poster-documents.service.js';
import { isPosterDesign } from './poster-design.js';
import { POSTER_STYLE } from './poster-style.js';
import { createPosterView, type PosterView } from './poster-view.js';
import { joinNames } from '#web/pages/join-names.js';

const view = loadView<PosterView>(import.meta.url, './views/poster.eta');

/** The limit for each kind of document, minute and address, because documents that are not cached are rendered. */
const LIMITED = 60;

const TYPES = { pdf: 'application/pdf', png: 'image/png' } as const;

type SheetQuery = Record<string, unknown>;

/** Serves posters to anybody with the link, which is public on the wall. */
@Controller('posters')
export class PosterPagesController {
  constructor(
    private readonly documents: PosterDocuments,
    private readonly config: Config,
  ) {}

  @Get(':slug')
  @Throttle(LIMITED)
  async show(@Param('slug') slug: string): Promise<PageResult> {
    const published = await this.getPoster(slug, {});
    const { poster, content } = published;
    const sheet = { format: 'svg', paperSize: poster.paperSize, bleed: false } as const;
    const svg = (await this.documents.get(published, sheet)).toString();
    const data = createPosterView({ ...published, svg, root: getRootPath(this.config) });
    return showPublicPage({
      view,
      title: joinNames(content.title, content.storeName),
      lang: content.locale,
      colors: content.colors,
      styles: [POSTER_STYLE],
      preview: {
        title: joinNames(content.title, content.storeName),
        description: data.text,
        image: `${this.config.publicUrl}/posters/${poster.slug}.png?paper_size=a5`,
      },
      data,
    });
  }

  @Get(':slug.pdf')
  @Throttle(LIMITED)
  async pdf(
    @Param('slug') slug: string,
    @Query() query: SheetQuery,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    await this.send('pdf', await this.getPoster(slug, query), query, request, reply);
  }

  @Get(':slug.png')
  @Throttle(LIMITED)
  async png(
    @Param('slug') slug: string,
    @Query() query: SheetQuery,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    await this.send('png', await this.getPoster(slug, query), query, request, reply);
  }

  private async send(
    format: keyof typeof TYPES,
    published: PublishedPoster,
    query: SheetQuery,
    request: FastifyRequest,
    reply: FastifyReply,
  ): Promise<void> {
    const sheet = { format, ...parseSheet(published, query) };
    const etag = `"${this.documents.computeHash(published, sheet)}"`;
    reply.headers({ etag, 'cache-control': 'public, no-cache', 'x-robots-tag': 'noindex' });
    if (matchesEtag(etag, request.headers['if-none-match'])) {
      await reply.status(304).send();
      return;
    }
    const bytes = await this.documents.get(published, sheet);
    await reply
      .type(TYPES[format])
      .header('content-disposition', `inline; filename="poster-${sheet.paperSize}.${format}"`)
      .send(bytes);
  }

  private async getPoster(
    slug: string,
    { design = 'rewards' }: SheetQuery,
  ): Promise<PublishedPoster> {
    const published = isPosterDesign(design) && (await this.documents.find(slug, design));
    if (!published) throw new NotFoundError('Poster');
    return published;
  }
}

function parseSheet({ poster }: PublishedPoster, query: SheetQuery): Omit<Sheet, 'format'> {
  const { paper_size: paperSize = poster.paperSize, bleed = 'false' } = query;
  const isKnownSize = typeof paperSize === 'string' && isPaperSize(paperSize);
  if (!isKnownSize || (bleed !== 'true' && bleed !== 'false')) throw new NotFoundError('Poster');
  return { paperSize, bleed: bleed === 'true' };
}
