import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { Pool } from 'pg';
import type { PngOptions } from 'sharp';
import { FairQueue } from '#kernel/fair-queue.js';
import { ask } from '#database/connection.js';
import {
  ICON_SIZES,
  STRIP_SIZES,
  type IconSize,
  type StripDesign,
  type StripSize,
} from './strip-design.js';
import { iconSvg, stripSvg } from './strip-svg.js';

/** Of the four threads of libuv, which also look up names and hash passwords. */
const MOST_AT_ONCE = 2;
const MOST_WAITING = 200;
const WAIT_MS = 15_000;
const DRAWN_WITHIN_SECONDS = 10;
const LAYERS_KEPT_BYTES = 16 * 1024 * 1024;

/**
 * With a picture, a strip has 256 colours of its own and a fifth of the bytes, and phones fetch it with each stamp. What
 * is drawn stays as it is: it is small anyway, and flat colours would show a grain.
 */
const PICTURE_PNG: PngOptions = { palette: true, colours: 256, dither: 1, effort: 4 };

/** An image of a design. */
export type StripImage = { filled: number; size: StripSize } | { icon: IconSize };

/** Draws images, each store in its turn. */
@Injectable()
export class StripRenderer {
  private readonly queue = new FairQueue({
    most: MOST_AT_ONCE,
    mostWaiting: MOST_WAITING,
    waitMs: WAIT_MS,
  });
  /** Pictures in the sizes of images, as data URIs: the images of a card differ only in their stamps. */
  private readonly layers = new LRUCache<string, string>({
    maxSize: LAYERS_KEPT_BYTES,
    sizeCalculation: ({ length }) => length,
  });

  constructor(private readonly pool: Pool) {}

  /** @returns PNG @throws UnavailableError when there is too much to draw */
  draw(accountId: number, design: StripDesign, image: StripImage): Promise<Buffer> {
    return this.queue.run(accountId, async () => {
      if ('icon' in image) return png(iconSvg(design, image.icon, ICON_SIZES[image.icon]));
      const { layer } = design;
      const picture = 'picture' in layer ? await this.layer(layer.picture, image.size) : undefined;
      const svg = stripSvg(design, image.filled, STRIP_SIZES[image.size], picture);
      return png(svg, picture === undefined ? {} : PICTURE_PNG);
    });
  }

  private async layer(hash: string, size: StripSize): Promise<string> {
    const key = `${hash}@${size}`;
    const known = this.layers.get(key);
    if (known !== undefined) return known;
    const [picture] = await ask<{ png: Buffer }>(this.pool, {
      text: 'select png from pictures where hash = $1 limit 1',
      values: [hash],
    });
    if (!picture) throw new Error(`the picture ${hash} of a design is missing`);
    const { width, height } = STRIP_SIZES[size];
    const { sharp } = await import('#kernel/pictures.js');
    const resized = await sharp(picture.png)
      .resize(width, height, { fit: 'cover' })
      // It is decoded again at once.
      .png({ compressionLevel: 1 })
      .timeout({ seconds: DRAWN_WITHIN_SECONDS })
      .toBuffer();
    const uri = `data:image/png;base64,${resized.toString('base64')}`;
    this.layers.set(key, uri);
    return uri;
  }
}

async function png(svg: string, options: PngOptions = {}): Promise<Buffer> {
  const { sharp } = await import('#kernel/pictures.js');
  return sharp(Buffer.from(svg)).png(options).timeout({ seconds: DRAWN_WITHIN_SECONDS }).toBuffer();
}
