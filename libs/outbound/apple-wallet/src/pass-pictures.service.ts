import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { countKeptBytes } from '#kernel/kept-bytes.js';
import type { PassContent } from '#passes/pass-content.js';
import { PassImages } from '#passes/pass-images.service.js';
import { StripImages } from '#card-images/strip-images.service.js';
import { passFile, type PassFile } from './pass-package.js';

const KEPT_BYTES = 32 * 1024 * 1024;
const SCALES = [
  { scale: '1x', suffix: '' },
  { scale: '2x', suffix: '@2x' },
  { scale: '3x', suffix: '@3x' },
] as const;

type Wanted = { hash: string; filled: number };

/** The images of a pass with their sums: icon, logo and strip, each in the three sizes that phones want. */
@Injectable()
export class PassPictures {
  private readonly kept = new LRUCache<string, PassFile[], Wanted>({
    maxSize: KEPT_BYTES,
    sizeCalculation: (files) => files.reduce((sum, { bytes }) => sum + countKeptBytes(bytes), 0),
    fetchMethod: (_key, _old, { context }) => this.find(context),
    ignoreFetchAbort: true,
    allowStaleOnFetchAbort: true,
  });

  constructor(
    private readonly links: PassImages,
    private readonly images: StripImages,
  ) {}

  async filesOf(content: PassContent): Promise<PassFile[]> {
    const { hash, filled } = await this.links.linksOf(content);
    const files = await this.kept.fetch(`${hash}/${filled}`, { context: { hash, filled } });
    if (!files) throw new Error(`the images of design ${hash} are missing`);
    return files;
  }

  private async find({ hash, filled }: Wanted): Promise<PassFile[]> {
    return Promise.all(
      SCALES.flatMap(({ scale, suffix }) => [
        named(`icon${suffix}.png`, this.images.iconPng(hash, `icon@${scale}`)),
        named(`logo${suffix}.png`, this.images.iconPng(hash, `logo@${scale}`)),
        named(`strip${suffix}.png`, this.images.png(hash, filled, scale)),
      ]),
    );
  }
}

async function named(name: string, png: Promise<Buffer | undefined>): Promise<PassFile> {
  const bytes = await png;
  if (!bytes) throw new Error(`${name} of a design was not drawn`);
  return passFile(name, bytes);
}
