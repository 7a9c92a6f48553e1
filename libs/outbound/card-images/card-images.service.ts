import { Injectable, Logger } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { Pool } from 'pg';
import { Config } from '#configuration/config.js';
import { getErrorMessage } from '#platform/kernel/errors.js';
import { copyToKeep, countKeptBytes } from '#platform/kernel/kept-bytes.js';
import { query } from '#platform/database/connection.js';
import { LOGO_SIZES, type LogoDesign, type LogoSize } from './logo-design.js';
import { LogoRenderer } from './logo-renderer.service.js';
import { hashDesign, type IconSize, type StripDesign, type StripSize } from './strip-design.js';
import { StripRenderer, type StripImage } from './strip-renderer.service.js';

const MB = 1024 * 1024;
const MEMORY_CACHE_BYTES = 32 * MB;
const MAX_REMEMBERED_DESIGNS = 10_000;
/** After adding so much to the table, or a quarter of its limit, a process checks whether it is too large. */
const MAX_PRUNE_INTERVAL_BYTES = 32 * MB;

type Image = StripImage | { logo: LogoSize };
type ImageRequest = { hash: string; image: Image };
type DesignRow = { account_id: number; design: StripDesign | LogoDesign; png: Buffer | null };

/**
 * Provides the images of cards by the hash of their design. Each is drawn once, then cached in memory and in a table
 * that all processes share (ADR-0043).
 */
@Injectable()
export class CardImages {
  private readonly log = new Logger('card images');
  /** Draws images that are requested at the same time only once. */
  private readonly cache = new LRUCache<string, Buffer, ImageRequest>({
    maxSize: MEMORY_CACHE_BYTES,
    sizeCalculation: countKeptBytes,
    fetchMethod: (_name, _old, { context }) => this.load(context),
    // An image that is evicted while it is being drawn is still needed.
    ignoreFetchAbort: true,
    allowStaleOnFetchAbort: true,
  });
  private readonly remembered = new LRUCache<string, true>({ max: MAX_REMEMBERED_DESIGNS });
  private readonly keptBytes: number;
  private savedBytes = 0;

  constructor(
    private readonly pool: Pool,
    private readonly renderer: StripRenderer,
    private readonly logos: LogoRenderer,
    config: Config,
  ) {
    this.keptBytes = config.stripImageCacheMb * MB;
  }

  hashDesign(design: StripDesign | LogoDesign): string {
    return hashDesign(design);
  }

  /**
   * Stores a design, so that the URLs of its images work from then on. Call it whenever a pass is rendered.
   * @returns the design's hash
   */
  async remember(accountId: number, design: StripDesign | LogoDesign): Promise<string> {
    const hash = hashDesign(design);
    if (this.remembered.has(hash)) return hash;
    await query(this.pool, {
      text: `insert into card_image_designs (hash, account_id, design) values ($1, $2, $3)
        on conflict (hash) do nothing`,
      values: [hash, accountId, design],
    });
    this.remembered.set(hash, true);
    return hash;
  }

  /**
   * Finds a strip, or draws it.
   * @param filled 0 to the stamps of the design, see `countFilledStamps`
   * @returns undefined for a design that was never stored, or that has fewer stamps
   * @throws UnavailableError when too many images are waiting to be drawn
   */
  findPng(hash: string, filled: number, size: StripSize): Promise<Buffer | undefined> {
    return this.fetchImage(`${filled}@${size}`, { hash, image: { filled, size } });
  }

  /** Does the same for the square images with the card's icon. */
  findIconPng(hash: string, size: IconSize): Promise<Buffer | undefined> {
    return this.fetchImage(size, { hash, image: { icon: size } });
  }

  /** Does the same for the drawings of a store's logo. */
  findLogoPng(hash: string, size: LogoSize): Promise<Buffer | undefined> {
    return this.fetchImage(`logo ${size}`, { hash, image: { logo: size } });
  }

  /** Finds a logo as it was uploaded. @param picture its SHA-256 in hex */
  async findStoreLogo(picture: string): Promise<Buffer | undefined> {
    const [row] = await query<{ png: Buffer }>(this.pool, {
      name: 'logos_picture',
      text: 'select png from pictures where hash = $1 limit 1',
      values: [picture],
    });
    return row?.png;
  }

  private fetchImage(name: string, context: ImageRequest): Promise<Buffer | undefined> {
    return this.cache.fetch(`${context.hash}/${name}`, { context });
  }

  private async load({ hash, image }: ImageRequest): Promise<Buffer | undefined> {
    const name = toImageName(image);
    const [row] = await query<DesignRow>(this.pool, {
      name: 'card_images_find',
      text: `select d.account_id, d.design,
          (select i.png from card_images i where i.hash = d.hash and i.name = $2) as png
        from card_image_designs d where d.hash = $1`,
      values: [hash, name],
    });
    if (!row) return undefined;
    if (row.png) return copyToKeep(row.png);
    const png = await this.draw(row, image);
    if (!png) return undefined;
    await this.save(hash, name, png);
    return copyToKeep(png);
  }

  /** @returns undefined when the design has no such image */
  private async draw(
    { account_id: accountId, design }: DesignRow,
    image: Image,
  ): Promise<Buffer | undefined> {
    if ('logo' in image) {
      return 'logo' in design ? this.logos.render(accountId, design, image.logo) : undefined;
    }
    if ('logo' in design || ('filled' in image && image.filled > design.stamps)) return undefined;
    return this.renderer.render(accountId, design, image);
  }

  /** Stores an image. A failure is only logged: the image exists, and can be drawn again. */
  private async save(hash: string, name: string, png: Buffer): Promise<void> {
    try {
      await query(this.pool, {
        name: 'card_images_keep',
        text: `insert into card_images (hash, name, png) values ($1, $2, $3)
          on conflict (hash, name) do nothing`,
        values: [hash, name, png],
      });
      this.savedBytes += png.length;
      if (this.savedBytes >= Math.min(MAX_PRUNE_INTERVAL_BYTES, this.keptBytes / 4)) {
        this.savedBytes = 0;
        await this.prune();
      }
    } catch (error) {
      this.log.warn(`an image could not be stored: ${getErrorMessage(error)}`);
    }
  }

  /** Deletes the images that were drawn first. */
  private async prune(): Promise<void> {
    await query(this.pool, {
      text: `delete from card_images i using (
          select hash, name,
            sum(octet_length(png)) over (order by drawn_at desc, hash, name) as bytes
          from card_images
        ) aged
        where aged.hash = i.hash and aged.name = i.name and aged.bytes > $1`,
      values: [this.keptBytes],
    });
  }
}

function toImageName(image: Image): string {
  if ('logo' in image) return `logo ${image.logo}`;
  return 'icon' in image ? image.icon : `${image.filled}@${image.size}`;
}

export function isLogoSize(size: string): size is LogoSize {
  return Object.hasOwn(LOGO_SIZES, size);
}
