import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { countKeptBytes } from '#platform/kernel/kept-bytes.js';
import type { PassContent } from '#outbound/passes/pass-content.js';
import { PassImages } from '#outbound/passes/pass-images.service.js';
import { CardImages } from '#outbound/card-images/card-images.service.js';
import { createPassFile, type PassFile } from './pass-package.js';

const CACHE_BYTES = 32 * 1024 * 1024;
const SCALES = [
  { scale: '1x', suffix: '' },
  { scale: '2x', suffix: '@2x' },
  { scale: '3x', suffix: '@3x' },
] as const;

/** @property logo the hash of the logo's design */
type ImageKey = { hash: string; filled: number; logo: string | undefined };

/** Provides the images of a pass with their hashes: icon, logo and strip, each in the three sizes of phones. */
@Injectable()
export class PassPictures {
  private readonly cache = new LRUCache<string, PassFile[], ImageKey>({
    maxSize: CACHE_BYTES,
    sizeCalculation: (files) => files.reduce((sum, { bytes }) => sum + countKeptBytes(bytes), 0),
    fetchMethod: (_key, _old, { context }) => this.renderFiles(context),
    ignoreFetchAbort: true,
    allowStaleOnFetchAbort: true,
  });

  constructor(
    private readonly links: PassImages,
    private readonly images: CardImages,
  ) {}

  async getFiles(content: PassContent): Promise<PassFile[]> {
    const { hash, filled, brand } = await this.links.createLinks(content);
    const logo = brand?.hash;
    const files = await this.cache.fetch(`${hash}/${filled}/${logo}`, {
      context: { hash, filled, logo },
    });
    if (!files) throw new Error(`the images of design ${hash} are missing`);
    return files;
  }

  private async renderFiles({ hash, filled, logo }: ImageKey): Promise<PassFile[]> {
    return Promise.all(
      SCALES.flatMap(({ scale, suffix }) => [
        toPassFile(
          `icon${suffix}.png`,
          logo === undefined
            ? this.images.findIconPng(hash, `icon@${scale}`)
            : this.images.findLogoPng(logo, `icon@${scale}`),
        ),
        toPassFile(
          `logo${suffix}.png`,
          logo === undefined
            ? this.images.findIconPng(hash, `logo@${scale}`)
            : this.images.findLogoPng(logo, `wide@${scale}`),
        ),
        toPassFile(`strip${suffix}.png`, this.images.findPng(hash, filled, scale)),
      ]),
    );
  }
}

/** Reads the width in pixels, which are points at the first scale (PNG, 11.2.2 IHDR). */
export function findPngWidth(png: Buffer | undefined): number | null {
  return png && png.length >= 24 ? png.readUInt32BE(16) : null;
}

async function toPassFile(name: string, png: Promise<Buffer | undefined>): Promise<PassFile> {
  const bytes = await png;
  if (!bytes) throw new Error(`${name} of a design was not drawn`);
  return createPassFile(name, bytes);
}
