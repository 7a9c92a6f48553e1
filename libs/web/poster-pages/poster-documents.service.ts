import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { Pool } from 'pg';
import { copyToKeep, countKeptBytes } from '#platform/kernel/kept-bytes.js';
import { getNow } from '#platform/kernel/clock.js';
import { NotFoundError } from '#platform/kernel/errors.js';
import { query } from '#platform/database/connection.js';
import type { Account } from '#loyalty/accounts/account.js';
import { createLogoDesign } from '#outbound/card-images/logo-design.js';
import { CardImages } from '#outbound/card-images/card-images.service.js';
import type { Card } from '#loyalty/cards/card.js';
import type { Reward } from '#loyalty/rewards/reward.js';
import { isSignupOpen, type Poster } from '#loyalty/posters/poster.js';
import { PosterFonts } from '#loyalty/posters/poster-fonts.service.js';
import { PostersService } from '#loyalty/posters/posters.service.js';
import { PAPERS, type PaperSize } from './paper.js';
import {
  createHeadline,
  createPosterContent,
  listTexts,
  hashJson,
  type PosterContent,
  type PosterLook,
} from './poster-content.js';
import { dressPoster, type PosterDesign } from './poster-design.js';
import { LAYOUT_VERSION, layOutPoster } from './poster-layout.js';
import type { PosterLogo } from './poster-logo.js';
import { PosterRenderer, type Format } from './poster-renderer.service.js';

const MAX_CACHE_BYTES = 32 * 1024 * 1024;
const SLUG = /^[0-9A-Za-z]{1,64}$/;

const FIND = {
  name: 'poster_parts',
  text: `
    select p.state as poster, c.state as card, a.state as account, a.display_name as store_name, a.locale,
      coalesce((select jsonb_agg(w.state) from rewards w where w.card_id = c.id), '[]') as rewards
    from posters p
    join cards c on c.id = p.card_id
    join accounts a on a.id = p.account_id
    where p.slug = $1 and p.deleted_at is null`,
};

const FIND_CARD = {
  name: 'poster_draft_parts',
  text: `
    select c.state as card, a.state as account, a.display_name as store_name, a.locale,
      coalesce((select jsonb_agg(w.state) from rewards w where w.card_id = c.id), '[]') as rewards
    from cards c
    join accounts a on a.id = c.account_id
    where c.id = $1 and c.account_id = $2`,
};

type PosterRow = CardRow & { poster: Poster };

type CardRow = {
  card: Card;
  account: Account;
  store_name: string;
  locale: string;
  rewards: Reward[];
};

/** @property isOpen whether people can sign up now */
export type PublishedPoster = { poster: Poster; content: PosterContent; isOpen: boolean };

/** A poster that is not saved. Null: the poster takes it from its card. */
export type PosterDraft = { cardId: number } & {
  [K in 'title' | 'primaryColor' | 'textColor' | 'secondaryColor']: string | null;
};

/** The slug in the code of a preview. No poster has it, because it is too short. */
const NO_SLUG = 'preview';

/** Describes a document. @property bleed with a ground beyond the edge, and crop marks */
export type Sheet = { format: Format; paperSize: PaperSize; bleed: boolean };

type DocumentRequest = { accountId: number; content: PosterContent; sheet: Sheet };

/** Renders the documents of posters on demand, and caches them by a hash of their content. */
@Injectable()
export class PosterDocuments {
  /** The cache also joins concurrent requests for the same document. */
  private readonly documents = new LRUCache<string, Buffer, DocumentRequest>({
    maxSize: MAX_CACHE_BYTES,
    sizeCalculation: countKeptBytes,
    fetchMethod: (_hash, _old, { context }) => this.make(context),
    // Still returns a document that others evict while it is rendered.
    ignoreFetchAbort: true,
    allowStaleOnFetchAbort: true,
  });

  constructor(
    private readonly pool: Pool,
    private readonly posters: PostersService,
    private readonly images: CardImages,
    private readonly fonts: PosterFonts,
    private readonly renderer: PosterRenderer,
  ) {}

  /** Finds a poster, in a design. @returns undefined if there is none, or it was deleted */
  async find(slug: string, design: PosterDesign): Promise<PublishedPoster | undefined> {
    if (!SLUG.test(slug)) return undefined;
    const [row] = await query<PosterRow>(this.pool, { ...FIND, values: [slug] });
    if (!row) return undefined;
    const { poster, card } = row;
    const content = await this.createContent(row, poster, design, poster.slug);
    return { poster, content, isOpen: isSignupOpen(poster, card, getNow()) };
  }

  /** Lists the texts of a poster of which a document leaves something out, with the characters. */
  async listLeftOut(slug: string): Promise<{ text: string; characters: string }[]> {
    const published = await this.find(slug, 'rewards');
    if (!published) return [];
    return listTexts(published.content).flatMap((text) => {
      const characters = this.fonts.listIllegible(text).join(' ');
      return characters === '' ? [] : [{ text, characters }];
    });
  }

  /** Draws a poster that is not saved. @throws NotFoundError when the store has no such card, UnavailableError */
  async drawDraft(
    accountId: number,
    draft: PosterDraft,
    sheet: Omit<Sheet, 'format'>,
  ): Promise<Buffer> {
    const row = await this.getCard(accountId, draft.cardId);
    const { card } = row;
    const look = {
      title: draft.title ?? createHeadline(toParts(row)),
      primaryColor: draft.primaryColor ?? card.cardColor,
      textColor: draft.textColor ?? card.textColor,
      secondaryColor: draft.secondaryColor ?? card.stampBackgroundColor,
      createdAt: card.createdAt,
    };
    const content = await this.createContent(row, look, 'rewards', NO_SLUG);
    return this.make({ accountId, content, sheet: { ...sheet, format: 'svg' } });
  }

  /** Finds the title for a poster of a card. @throws NotFoundError */
  async findHeadline(accountId: number, cardId: number): Promise<string> {
    return createHeadline(toParts(await this.getCard(accountId, cardId)));
  }

  private async getCard(accountId: number, cardId: number): Promise<CardRow> {
    const [row] = await query<CardRow>(this.pool, { ...FIND_CARD, values: [cardId, accountId] });
    if (!row) throw new NotFoundError('Card');
    return row;
  }

  private async createContent(
    row: CardRow,
    look: PosterLook,
    design: PosterDesign,
    slug: string,
  ): Promise<PosterContent> {
    const { account } = row;
    const poster = dressPoster(look, design);
    const logo =
      account.logo === null
        ? null
        : await this.images.remember(
            account.id,
            createLogoDesign(account.logo, poster.primaryColor),
          );
    const urls = this.posters.toUrls(slug);
    const { logoContainsName } = account;
    return createPosterContent({ ...toParts(row), poster, design, logo, logoContainsName, urls });
  }

  /** Computes the hash, in hex, of everything that determines a document's bytes. */
  computeHash({ content }: PublishedPoster, sheet: Sheet): string {
    return hashJson({ content, sheet, layout: LAYOUT_VERSION, fonts: this.fonts.computeHash() });
  }

  /** Returns a cached or newly rendered document. @throws UnavailableError when too many documents wait */
  async get(published: PublishedPoster, sheet: Sheet): Promise<Buffer> {
    const { poster, content } = published;
    const context = { accountId: poster.accountId, content, sheet };
    const document = await this.documents.fetch(this.computeHash(published, sheet), { context });
    if (!document) throw new Error(`no document was rendered for poster ${poster.id}`);
    return document;
  }

  private async make({ accountId, content, sheet }: DocumentRequest): Promise<Buffer> {
    const { format, paperSize, bleed } = sheet;
    const document = await this.renderer.render(accountId, format, async () => {
      const logo = content.logo === null ? null : await this.findLogo(content.logo, format);
      const letters = await this.fonts.loadLetters(listTexts(content));
      const drawing = layOutPoster(content, PAPERS[paperSize], { bleed }, letters, logo);
      return { drawing, letters };
    });
    return copyToKeep(document);
  }

  /** Finds the logo, smaller for the page than for print. */
  private async findLogo(hash: string, format: Sheet['format']): Promise<PosterLogo> {
    const png = await this.images.findLogoPng(hash, format === 'svg' ? 'wide@3x' : 'poster');
    if (!png) throw new Error(`the logo ${hash} was not drawn`);
    // The size stands in the first chunk of every PNG (RFC 2083, section 4.1.1).
    return { png, width: png.readUInt32BE(16), height: png.readUInt32BE(20) };
  }
}

function toParts({ card, rewards, account, store_name: name, locale }: CardRow) {
  return { card, rewards, store: { name, locale, addressForm: account.addressForm } };
}
