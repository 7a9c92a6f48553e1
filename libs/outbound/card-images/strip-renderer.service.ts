import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { Pool } from 'pg';
import type { PngOptions } from 'sharp';
import { NotFoundError } from '#platform/kernel/errors.js';
import { getOwnerKey } from '#platform/database/database-waits.js';
import { FairQueue } from '#platform/kernel/fair-queue.js';
import { query } from '#platform/database/connection.js';
import {
  ICON_SIZES,
  STRIP_SIZES,
  type IconSize,
  type StripDesign,
  type StripSize,
} from './strip-design.js';
import { renderIcon, renderStrip } from './strip-svg.js';

/** Two of the four threads of libuv, which also resolve host names and hash passwords. */
const CONCURRENCY = 2;
const MAX_WAITING = 200;
const QUEUE_TIMEOUT_MS = 15_000;
const DRAWING_TIMEOUT_SECONDS = 10;
const LAYER_CACHE_BYTES = 16 * 1024 * 1024;

/**
 * Reduces a strip with a picture to a palette of 256 colours where it would be too large: this takes a fifth of the bytes,
 * and phones fetch the strip with each stamp.
 */
const PICTURE_PNG = { palette: true, colours: 256, effort: 4 } as const;

/**
 * In bytes. A pass has the first three and some 20 KB beside them: it stays below 250 KB, whatever the picture. Google and
 * mail programs fetch the last.
 */
const MAX_STRIP_BYTES: Record<StripSize, number> = {
  '1x': 20_000,
  '2x': 62_000,
  '3x': 138_000,
  hero: 138_000,
};

/**
 * Tried in turn until an image is small enough: detail goes first, which nobody misses behind stamps. Blur is in pixels of
 * the largest strip. The last always fits: of four colours, each pixel takes two bits.
 */
const PICTURE_QUALITIES: readonly { blur: number; png: PngOptions }[] = [
  // As it was supplied.
  { blur: 0, png: {} },
  { blur: 0, png: { ...PICTURE_PNG, dither: 1 } },
  // Soft shades turn into bands without any.
  { blur: 0, png: { ...PICTURE_PNG, dither: 0.5 } },
  // No more colours than the eye tells apart: of what is blurred, a palette would keep differences that nobody sees.
  ...[0, 4, 12].map((blur) => ({ blur, png: { ...PICTURE_PNG, dither: 0, quality: 70 } })),
  { blur: 12, png: { ...PICTURE_PNG, colours: 4, dither: 0 } },
];
/** Less does nothing. */
const MIN_BLUR = 0.3;

/** An image of a design. */
export type StripImage = { filled: number; size: StripSize } | { icon: IconSize };

/** Draws images. Round robin over the stores. */
@Injectable()
export class StripRenderer {
  private readonly queue = new FairQueue({
    concurrency: CONCURRENCY,
    maxWaiting: MAX_WAITING,
    waitMs: QUEUE_TIMEOUT_MS,
  });
  /** Caches resized pictures as data URIs: the images of a card differ only in their stamps. */
  private readonly layers = new LRUCache<string, string>({
    maxSize: LAYER_CACHE_BYTES,
    sizeCalculation: ({ length }) => length,
  });

  constructor(private readonly pool: Pool) {}

  /** Renders a PNG. @throws UnavailableError when too many images are waiting */
  render(accountId: number, design: StripDesign, image: StripImage): Promise<Buffer> {
    return this.queue.run(getOwnerKey(accountId), async () => {
      if ('icon' in image) return renderPng(renderIcon(design, image.icon, ICON_SIZES[image.icon]));
      const { layer } = design;
      return 'picture' in layer && layer.picture !== null
        ? this.renderOver(layer.picture, design, image)
        : renderPng(renderStrip(design, image.filled, STRIP_SIZES[image.size]));
    });
  }

  /** The same image each time, since its address never changes what it shows: the first quality that fits. */
  private async renderOver(
    picture: string,
    design: StripDesign,
    { filled, size }: { filled: number; size: StripSize },
  ): Promise<Buffer> {
    let png: Buffer = Buffer.alloc(0);
    for (const quality of PICTURE_QUALITIES) {
      const layer = await this.getLayer(picture, size, quality.blur);
      png = await renderPng(renderStrip(design, filled, STRIP_SIZES[size], layer), quality.png);
      if (png.length <= MAX_STRIP_BYTES[size]) break;
    }
    return png;
  }

  private async getLayer(hash: string, size: StripSize, blur: number): Promise<string> {
    const key = `${hash}@${size}~${blur}`;
    const cached = this.layers.get(key);
    if (cached !== undefined) return cached;
    const [picture] = await query<{ png: Buffer }>(this.pool, {
      text: 'select png from pictures where hash = $1 limit 1',
      values: [hash],
    });
    // Of a former design, which nothing but an old link shows.
    if (!picture) throw new NotFoundError('Image');
    const { width, height } = STRIP_SIZES[size];
    const { sharp } = await import('#platform/kernel/pictures.js');
    const sigma = (blur * width) / STRIP_SIZES['3x'].width;
    const resized = await sharp(picture.png)
      .resize(width, height, { fit: 'cover' })
      .blur(sigma >= MIN_BLUR && sigma)
      // It is decoded again immediately, so compression would be wasted.
      .png({ compressionLevel: 1 })
      .timeout({ seconds: DRAWING_TIMEOUT_SECONDS })
      .toBuffer();
    const uri = `data:image/png;base64,${resized.toString('base64')}`;
    this.layers.set(key, uri);
    return uri;
  }
}

async function renderPng(svg: string, options: PngOptions = {}): Promise<Buffer> {
  const { sharp } = await import('#platform/kernel/pictures.js');
  return sharp(Buffer.from(svg))
    .png(options)
    .timeout({ seconds: DRAWING_TIMEOUT_SECONDS })
    .toBuffer();
}
