import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import type { OverlayOptions } from 'sharp';
import { NotFoundError } from '#platform/kernel/errors.js';
import { getOwnerKey } from '#platform/database/database-waits.js';
import { FairQueue } from '#platform/kernel/fair-queue.js';
import { query } from '#platform/database/connection.js';
import { proposeColors, type ProposedColors } from './logo-colors.js';
import { LOGO_SIZES, type LogoDesign, type LogoSize } from './logo-design.js';
import { choosePlate, type LogoPlate, type RgbaPixels } from './logo-plate.js';

const TIMEOUT_SECONDS = 10;
const MAX_WAITING = 200;
const QUEUE_TIMEOUT_MS = 15_000;
/** Enough pixels to judge by. */
const SAMPLE_SIDE = 48;
/** The space between a wide logo and the edge of its plate, and the radius of its corners, by its height. */
const PLATE_PADDING = 0.12;
const PLATE_RADIUS = 0.16;
const ICON_MARGIN = 0.1;

type Area = { width: number; height: number };

/** Draws logos, one at a time. Round robin over the stores. What it reads was decoded and encoded by us when it was uploaded. */
@Injectable()
export class LogoRenderer {
  private readonly queue = new FairQueue({
    concurrency: 1,
    maxWaiting: MAX_WAITING,
    waitMs: QUEUE_TIMEOUT_MS,
  });

  constructor(private readonly pool: Pool) {}

  /** Renders a PNG. @throws UnavailableError when too many images are waiting */
  render(accountId: number, design: LogoDesign, size: LogoSize): Promise<Buffer> {
    return this.queue.run(getOwnerKey(accountId), () => this.draw(design, size));
  }

  private async draw({ logo, ground }: LogoDesign, size: LogoSize): Promise<Buffer> {
    const picture = await this.load(logo);
    const plate = await findPlate(picture, ground);
    const target = LOGO_SIZES[size];
    if (target.kind === 'wide') return renderWide(picture, plate, target);
    if (target.kind === 'banner') {
      const { width, height, inner } = target;
      const wide = await renderWide(picture, plate, inner);
      return renderCentered(await fitInto(wide, inner), { width, height }, ground);
    }
    const { side } = target;
    if (target.kind === 'round') return renderRound(picture, plate, side, target.safe);
    const inner = Math.max(1, Math.round(side * (1 - 2 * ICON_MARGIN)));
    return renderOnGround(await fitInto(picture, { width: inner, height: inner }), plate, side);
  }

  /** Proposes colours for a card with this logo. */
  propose(accountId: number, logo: string): Promise<ProposedColors[]> {
    return this.queue.run(getOwnerKey(accountId), async () =>
      proposeColors(await sample(await this.load(logo))),
    );
  }

  private async load(hash: string): Promise<Buffer> {
    const [picture] = await query<{ png: Buffer }>(this.pool, {
      name: 'logos_picture',
      text: 'select png from pictures where hash = $1 limit 1',
      values: [hash],
    });
    // Of a former logo, which nothing but an old link shows.
    if (!picture) throw new NotFoundError('Image');
    return picture.png;
  }
}

async function findPlate(picture: Buffer, ground: string): Promise<LogoPlate> {
  return choosePlate(await sample(picture), ground);
}

/** Reads a few pixels of a logo. */
async function sample(picture: Buffer): Promise<RgbaPixels> {
  const { sharp } = await import('#platform/kernel/pictures.js');
  const { data, info } = await sharp(picture)
    .resize(SAMPLE_SIDE, SAMPLE_SIDE, { fit: 'inside' })
    .ensureAlpha()
    .raw()
    .timeout({ seconds: TIMEOUT_SECONDS })
    .toBuffer({ resolveWithObject: true });
  return { data, width: info.width, height: info.height };
}

/** Renders the logo in its own proportions, with a plate behind it where it needs one. */
async function renderWide(picture: Buffer, plate: LogoPlate, area: Area): Promise<Buffer> {
  if (!plate.isNeeded) return (await fitInto(picture, area)).png;
  const padding = Math.round(area.height * PLATE_PADDING);
  const inner = await fitInto(picture, {
    width: area.width - 2 * padding,
    height: area.height - 2 * padding,
  });
  const width = inner.width + 2 * padding;
  const height = inner.height + 2 * padding;
  const radius = Math.round(height * PLATE_RADIUS);
  const { sharp } = await import('#platform/kernel/pictures.js');
  const rounded = `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}"><rect width="${width}" height="${height}" rx="${radius}" fill="${plate.ground}"/></svg>`;
  return sharp(Buffer.from(rounded))
    .composite([{ input: inner.png, left: padding, top: padding }])
    .png()
    .timeout({ seconds: TIMEOUT_SECONDS })
    .toBuffer();
}

/** Renders the logo within the circle that is left of a square. @param safe its diameter, as a share of the side */
async function renderRound(
  picture: Buffer,
  plate: LogoPlate,
  side: number,
  safe: number,
): Promise<Buffer> {
  const { sharp } = await import('#platform/kernel/pictures.js');
  const { width = 1, height = 1 } = await sharp(picture).metadata();
  const scale = (side * safe) / Math.hypot(width, height);
  const area = {
    width: Math.max(1, Math.round(width * scale)),
    height: Math.max(1, Math.round(height * scale)),
  };
  return renderOnGround(await fitInto(picture, area), plate, side);
}

function renderOnGround(
  picture: Area & { png: Buffer },
  { ground }: LogoPlate,
  side: number,
): Promise<Buffer> {
  return renderCentered(picture, { width: side, height: side }, ground);
}

async function renderCentered(
  { png, width, height }: Area & { png: Buffer },
  area: Area,
  background: string,
): Promise<Buffer> {
  const { sharp } = await import('#platform/kernel/pictures.js');
  const overlay: OverlayOptions = {
    input: png,
    left: Math.round((area.width - width) / 2),
    top: Math.round((area.height - height) / 2),
  };
  return sharp({ create: { ...area, channels: 3, background } })
    .composite([overlay])
    .png()
    .timeout({ seconds: TIMEOUT_SECONDS })
    .toBuffer();
}

async function fitInto(picture: Buffer, area: Area): Promise<Area & { png: Buffer }> {
  const { sharp } = await import('#platform/kernel/pictures.js');
  const { data, info } = await sharp(picture)
    .resize(area.width, area.height, { fit: 'inside' })
    .png()
    .timeout({ seconds: TIMEOUT_SECONDS })
    .toBuffer({ resolveWithObject: true });
  return { png: data, width: info.width, height: info.height };
}
