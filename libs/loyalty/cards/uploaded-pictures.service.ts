import { createHash } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { Config } from '#configuration/config.js';
import { InvalidFieldsError, RejectedError } from '#platform/kernel/errors.js';
import { getOwnerKey } from '#platform/database/database-waits.js';
import { FairQueue } from '#platform/kernel/fair-queue.js';
import { decodePicture, PictureError, type PictureFit } from '#platform/kernel/picture-decoder.js';
import { query } from '#platform/database/connection.js';
import { CapOverrides } from '#platform/event-store/commands/cap-overrides.service.js';
import { findPictureType, type PictureType } from '#platform/http/body-kinds.js';
import type { Issue } from '#platform/kernel/issues.js';
import { ISSUES } from '#translations/issues.js';

/** What a picture is uploaded for. @property field the name under which errors are reported */
export type PictureUse = { field: string; width: number; height: number; fit: PictureFit };

/** The largest size in which a strip is shown. */
export const STRIP: PictureUse = { field: 'strip_image', width: 1125, height: 432, fit: 'cover' };
/** Enough for the largest poster in 300 dpi. */
export const LOGO: PictureUse = { field: 'logo', width: 1200, height: 600, fit: 'content' };
/** A logo with its margin. */
export const WHOLE_LOGO: PictureUse = { ...LOGO, fit: 'inside' };

const LIMITS = {
  pixels: 25_000_000,
  scans: 100,
  /** The largest pictures take up to 256 MiB. */
  memoryBytes: 384 * 1024 * 1024,
  cpuMs: 10_000,
};
/** Time for waiting and decoding: a request is cut after 30 s, and then nobody knows what became of it. */
const GIVE_UP_AFTER_MS = 20_000;

const RENEW = {
  name: 'pictures_renew',
  text: 'update pictures set created_at = now() where hash = $1 and account_id = $2 returning hash',
};

/**
 * Deletes what neither a card nor the logo of the store shows. Not within a day of its upload, in which somebody may still
 * save the form with it.
 */
const DELETE_UNUSED = {
  name: 'pictures_delete_unused',
  text: `delete from pictures p
    where p.account_id = $1 and p.created_at < now() - interval '1 day'
      and not exists (select from cards c where c.account_id = $1 and c.state ->> 'stripPicture' = p.hash)
      and not exists (select from accounts a where a.id = $1 and a.state ->> 'logo' = p.hash)`,
};

/** Stores the pictures that stores upload: for the strips of their cards, and their logos. */
@Injectable()
export class UploadedPictures {
  /** Decodes one at a time. */
  private readonly queue = new FairQueue({
    concurrency: 1,
    maxWaiting: 4,
    waitMs: GIVE_UP_AFTER_MS,
  });

  constructor(
    private readonly pool: Pool,
    private readonly overrides: CapOverrides,
    private readonly config: Config,
  ) {}

  /**
   * Stores the picture upright, in the size that it is used in, in sRGB and re-encoded: nothing else of the upload stays.
   * @returns SHA-256 of what was stored, in hex
   * @throws InvalidFieldsError for what is no such picture, UnavailableError when it cannot be decoded within 20 s
   */
  async store(
    accountId: number,
    type: PictureType,
    uploaded: Buffer,
    use: PictureUse = STRIP,
  ): Promise<string> {
    if (findPictureType(uploaded) !== type)
      throw createPictureError(use, ISSUES.picture_type({ type }));
    const endsAt = performance.now() + GIVE_UP_AFTER_MS;
    const png = await this.queue.run(getOwnerKey(accountId), () =>
      encode(uploaded, use, endsAt - performance.now()),
    );
    const hash = createHash('sha256').update(png).digest('hex');
    await this.save(accountId, hash, png);
    return hash;
  }

  /** Keeps a picture for another day, if it is still there. @returns whether it is */
  async renew(accountId: number, hash: string): Promise<boolean> {
    const rows = await query(this.pool, { ...RENEW, values: [hash, accountId] });
    return rows.length > 0;
  }

  /** Stores a picture in the place of those that nothing uses any more. One that is uploaded again is as new. */
  private async save(accountId: number, hash: string, png: Buffer): Promise<void> {
    const max = await this.overrides.getMax('pictures', accountId, this.config.quotas.pictures);
    if (await this.renew(accountId, hash)) return;
    await query(this.pool, { ...DELETE_UNUSED, values: [accountId] });
    // At the same moment a few more may slip in; nothing depends on the exact number.
    const [status] = await query<{ is_full: boolean }>(this.pool, {
      text: 'select (select count(*) from pictures where account_id = $1) >= $2 as is_full',
      values: [accountId, max],
    });
    if (status?.is_full) {
      throw new RejectedError(
        { base: [ISSUES.too_many_pictures({ max })] },
        'limit_reached',
        'Choose one of the presets, or ask whoever runs the service to raise the limit.',
      );
    }
    await query(this.pool, {
      text: `insert into pictures (hash, account_id, png) values ($1, $2, $3)
        on conflict (hash, account_id) do update set created_at = now()`,
      values: [hash, accountId, png],
    });
  }
}

async function encode(uploaded: Buffer, use: PictureUse, timeMs: number): Promise<Buffer> {
  const { width, height, fit } = use;
  try {
    return await decodePicture(uploaded, { width, height, fit, limits: { ...LIMITS, timeMs } });
  } catch (cause) {
    if (!(cause instanceof PictureError)) throw cause;
    throw createPictureError(
      use,
      ISSUES.picture_unreadable({ megapixels: LIMITS.pixels / 1_000_000, scans: LIMITS.scans }),
      cause,
    );
  }
}

function createPictureError(
  { field }: PictureUse,
  issue: Issue,
  cause?: unknown,
): InvalidFieldsError {
  return Object.assign(new InvalidFieldsError({ [field]: [issue] }), { cause });
}
