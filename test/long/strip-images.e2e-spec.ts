import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createHash } from 'node:crypto';
import { Pool } from 'pg';
import sharp from 'sharp';
import { STAMP_ICONS, STRIP_PRESETS } from '#cards/card-appearance.js';
import { arrangeStamps, STRIP } from '#card-images/stamp-grid.js';
import {
  createStripDesign,
  STRIP_SIZES,
  type StripAppearance,
  type StripSize,
} from '#card-images/strip-design.js';
import { StripImages } from '#card-images/strip-images.service.js';
import {
  pixelAt,
  readPixels,
  speckled,
  quarters,
  type Pixels,
} from '../support/fixtures/pictures.js';
import { startService, type LocalService } from '../support/services/service.js';

const FIXTURES = 'test/support/fixtures/strip-sheets';
const STORE = 1;
const COUNTS = Array.from({ length: 21 }, (_, index) => index + 1);
const LOOKS: StripAppearance = {
  stampsRequired: 10,
  stampIcon: 'coffee',
  stampColor: '#6B4226',
  stampBackgroundColor: '#FFFFFF',
  cardColor: '#6B4226',
  stripType: 'color',
  stripColor: null,
  stripOpacity: 100,
  stripPreset: null,
  stripPicture: null,
};

let service: LocalService;
let images: StripImages;
/** By name, the hash of a picture that was stored. */
const pictures = new Map<string, string>();

beforeAll(async () => {
  service = await startService();
  images = service.app.get(StripImages, { strict: false });
  await addPicture('speckled', await speckled(STRIP.width, STRIP.height).png().toBuffer());
  await addPicture('photo', await photo());
});
afterAll(() => service.stop());

async function addPicture(name: string, png: Buffer): Promise<void> {
  const hash = createHash('sha256').update(png).digest('hex');
  await service.app
    .get(Pool)
    .query('insert into pictures (hash, account_id, png) values ($1, $2, $3)', [hash, STORE, png]);
  pictures.set(name, hash);
}

/** Something like a photograph: soft, and light on one side. */
function photo(): Promise<Buffer> {
  return quarters(8, 4)
    .resize(STRIP.width, STRIP.height, { fit: 'fill', kernel: 'cubic' })
    .blur(30)
    .modulate({ saturation: 0.45, brightness: 0.8 })
    .png()
    .toBuffer();
}

type Rewards = Parameters<typeof createStripDesign>[1];
const at = (...stamps: number[]): Rewards =>
  stamps.map((stampsRequired) => ({ stampsRequired, active: true }));

const withPicture = (name: string): Partial<StripAppearance> => ({
  stripType: 'image',
  stripPicture: pictures.get(name) ?? '',
});

async function draw(
  looks: Partial<StripAppearance>,
  filled: number,
  { rewards = [], size = '3x' }: { rewards?: Rewards; size?: StripSize } = {},
): Promise<Buffer> {
  const hash = await images.remember(STORE, createStripDesign({ ...LOOKS, ...looks }, rewards));
  const png = await images.findPng(hash, filled, size);
  if (!png) throw new Error('nothing was drawn');
  return png;
}

/** Images side by side, three in a row. */
async function sheetOf(pngs: Buffer[], { width, height }: { width: number; height: number }) {
  const columns = 3;
  const composed = sharp({
    create: {
      width: columns * (width + 6) - 6,
      height: Math.ceil(pngs.length / columns) * (height + 6) - 6,
      channels: 3,
      background: '#808080',
    },
  }).composite(
    pngs.map((input, i) => ({
      input,
      left: (i % columns) * (width + 6),
      top: Math.floor(i / columns) * (height + 6),
    })),
  );
  return composed.png({ palette: true, colours: 128, effort: 8 }).toBuffer();
}

/**
 * Pixel by pixel, since another version of a library may draw edges a little differently. Palettes are of 128 colours.
 * STRIP_SHEETS=write writes the fixtures.
 */
async function expectLikeFixture(name: string, sheet: Buffer): Promise<void> {
  const file = `${FIXTURES}/${name}.png`;
  if (process.env['STRIP_SHEETS'] === 'write') {
    mkdirSync(FIXTURES, { recursive: true });
    writeFileSync(file, sheet);
  }
  if (!existsSync(file)) throw new Error(`${file} is missing: run with STRIP_SHEETS=write`);
  const [actual, expected] = [await readPixels(sheet), await readPixels(readFileSync(file))];
  expect([actual.width, actual.height]).toEqual([expected.width, expected.height]);
  const different = actual.data.reduce(
    (count, value, i) => count + Number(Math.abs(value - (expected.data[i] ?? 0)) > 24),
    0,
  );
  expect(different / actual.data.length).toBeLessThan(0.001);
}

describe('the sheets', () => {
  it.each([
    ['color', () => ({})],
    ['preset', () => ({ stripType: 'preset' as const, stripPreset: 'bakery', stripOpacity: 85 })],
    ['image', () => withPicture('photo')],
  ])('show every number of stamps on a strip of the type %s', async (type, looks) => {
    const drawn: Buffer[] = [];
    for (const stamps of COUNTS) {
      const rewards = at(...new Set([Math.ceil(stamps / 2), stamps]));
      const filled = Math.floor((stamps * 2) / 3);
      drawn.push(
        await draw({ ...looks(), stampsRequired: stamps }, filled, { rewards, size: '1x' }),
      );
    }
    await expectLikeFixture(type, await sheetOf(drawn, STRIP_SIZES['1x']));
  });

  it('show every preset, and the hero image', async () => {
    const drawn: Buffer[] = [];
    for (const stripPreset of STRIP_PRESETS) {
      const looks = { stripType: 'preset' as const, stripPreset, stampsRequired: 8 };
      const png = await draw(looks, 5, { rewards: at(8), size: 'hero' });
      drawn.push(await sharp(png).resize(344, 112).png().toBuffer());
    }
    await expectLikeFixture('presets', await sheetOf(drawn, { width: 344, height: 112 }));
  });

  it('show every icon, filled and empty, and as a logo', async () => {
    const drawn: Buffer[] = [];
    for (const stampIcon of STAMP_ICONS) {
      const looks = { stampIcon, stampsRequired: 2, cardColor: '#1F4E5F', stampColor: '#1F4E5F' };
      const strip = await draw(looks, 1, { size: '1x' });
      const hash = await images.remember(STORE, createStripDesign({ ...LOOKS, ...looks }, []));
      const logo = await sharp(await images.findIconPng(hash, 'program'))
        .resize(100, 100)
        .toBuffer();
      drawn.push(
        await sharp(strip)
          .composite([{ input: logo, left: 4, top: 22 }])
          .toBuffer(),
      );
    }
    await expectLikeFixture('icons', await sheetOf(drawn, STRIP_SIZES['1x']));
  });
});

/** Marks the pixels of stamps, with what is drawn around them. */
function stampsOf(stamps: number): Uint8Array {
  const { cellSize, centres } = arrangeStamps(stamps);
  const mask = new Uint8Array(STRIP.width * STRIP.height);
  const reach = Math.ceil(cellSize * 0.62 + 1);
  for (const { x, y } of centres) {
    const [left, right] = [Math.max(0, Math.floor(x - reach)), Math.ceil(x + reach)];
    for (let row = Math.max(0, Math.floor(y - reach)); row < y + reach; row++) {
      for (let column = left; column < Math.min(right, STRIP.width); column++) {
        if (Math.hypot(x - column - 0.5, y - row - 0.5) >= reach) continue;
        mask[row * STRIP.width + column] = 1;
      }
    }
  }
  return mask;
}

/** How many pixels outside of the stamps are not as expected. */
function differing(
  stamps: number,
  actual: Pixels,
  expected: Pixels | number[],
  tolerance = 1,
): number {
  const mask = stampsOf(stamps);
  const expectedAt = (pixel: number, channel: number) =>
    Array.isArray(expected)
      ? expected[channel]
      : expected.data[pixel * expected.channels + channel];
  let [seen, count] = [0, 0];
  for (let pixel = 0; pixel < STRIP.width * STRIP.height; pixel++) {
    if (mask[pixel]) continue;
    seen++;
    const isSame = [0, 1, 2].every((channel) => {
      const value = actual.data[pixel * actual.channels + channel] ?? NaN;
      return Math.abs(value - (expectedAt(pixel, channel) ?? NaN)) <= tolerance;
    });
    if (!isSame) count++;
  }
  expect(seen).toBeGreaterThan(50_000);
  return count;
}

describe('the opacity of the strip', () => {
  it.each([1, 5, 10, 21])('at 100 leaves the picture around %i stamps as it is', async (stamps) => {
    const source = await readPixels(await photo());
    const looks = { ...withPicture('photo'), stampsRequired: stamps };
    const drawn = await readPixels(await draw(looks, 1, { rewards: at(stamps) }));
    // As far as 256 colours can tell its shades apart.
    const limit = STRIP.width * STRIP.height * 0.005;
    expect(differing(stamps, drawn, source, 8)).toBeLessThan(limit);
  });

  it.each([
    ['a picture', () => withPicture('speckled')],
    ['a preset', () => ({ stripType: 'preset' as const, stripPreset: 'books' })],
    ['a colour', () => ({ stripColor: '#FF0000' })],
  ])("at 0 shows the card's colour instead of %s", async (_what, looks) => {
    const drawn = await readPixels(
      await draw({ ...looks(), stripOpacity: 0, cardColor: '#123456' }, 1),
    );
    expect(differing(10, drawn, [0x12, 0x34, 0x56])).toBe(0);
  });

  it('at 25 mixes a quarter of the layer with the card', async () => {
    const looks = { stripColor: '#FFFFFF', cardColor: '#000000', stripOpacity: 25 };
    expect(differing(10, await readPixels(await draw(looks, 1)), [64, 64, 64])).toBe(0);
  });
});

it('fills stamps in their order, each where the grid places it', async () => {
  // Full squares of colour would be seen anywhere in a stamp; here, a place beside the icon.
  const beside = (stamps: number, index: number) => {
    const { cellSize, centres } = arrangeStamps(stamps);
    const { x = 0, y = 0 } = centres[index] ?? {};
    return [x + cellSize * 0.38, y] as const;
  };
  const looks = { stampsRequired: 7, cardColor: '#000000', stampBackgroundColor: '#FFFFFF' };
  for (let filled = 0; filled <= 7; filled++) {
    const drawn = await readPixels(await draw(looks, filled));
    const white = COUNTS.slice(0, 7).map(
      (_, index) => (pixelAt(drawn, ...beside(7, index))[0] ?? 0) > 200,
    );
    expect(white).toEqual(COUNTS.slice(0, 7).map((count) => count <= filled));
  }
});

it('marks the stamps at which a reward is due, and no others', async () => {
  const looks = { stampsRequired: 12, stampColor: '#FF0000', cardColor: '#000000' };
  const { cellSize, centres } = arrangeStamps(12);
  for (const marked of [[], [1], [12], [3, 7, 12]]) {
    const drawn = await readPixels(await draw(looks, 0, { rewards: at(...marked) }));
    // Within the badge, below its present.
    const badges = centres.map(({ x, y }) =>
      pixelAt(drawn, x + cellSize * 0.31, y - cellSize * 0.185),
    );
    const filled = badges.flatMap(([red = 0, green = 0], index) =>
      red > 180 && green < 90 ? [index + 1] : [],
    );
    expect(filled).toEqual(marked);
  }
});

describe('drawn images', () => {
  const isStored = async (hash: string) => {
    const { rows } = await service.app
      .get(Pool)
      .query<{ name: string }>('select name from strip_images where hash = $1 order by name', [
        hash,
      ]);
    return rows.map(({ name }) => name);
  };
  const remember = (looks: Partial<StripAppearance>, images_ = images, store = STORE) =>
    images_.remember(store, createStripDesign({ ...LOOKS, ...looks }, []));

  it('are drawn once, however many ask at the same time and afterwards', async () => {
    const hash = await remember({ stampColor: '#010203' });
    const requests = Array.from({ length: 20 }, () => images.findPng(hash, 3, '2x'));
    const [first, ...others] = await Promise.all(requests);
    // The same bytes in the same place: nobody drew them a second time.
    expect(others.every((one) => one === first)).toBe(true);
    expect(await images.findPng(hash, 3, '2x')).toBe(first);
    expect(await isStored(hash)).toEqual(['3@2x']);
  });

  it('are shared with another process, which draws nothing itself', async () => {
    const hash = await remember({ stampColor: '#010204' });
    const first = await images.findPng(hash, 3, '1x');
    const { database, environment } = service;
    const other = await startService(environment, { ...database, close: async () => undefined });
    try {
      const theirs = other.app.get(StripImages, { strict: false });
      expect(await theirs.findPng(hash, 3, '1x')).toEqual(first);
      // What is not what the design shows can only come from the table.
      const { query } = service.database;
      await query("update strip_images set png = 'not drawn' where hash = $1", [hash]);
      const third = await startService(environment, { ...database, close: async () => undefined });
      const png = await third.app.get(StripImages, { strict: false }).findPng(hash, 3, '1x');
      await third.stop();
      expect(png?.toString()).toBe('not drawn');
    } finally {
      await other.stop();
    }
  });

  it('are undefined for designs that no pass has shown, and for more stamps than there are', async () => {
    expect(await images.findPng('0'.repeat(32), 1, '1x')).toBeUndefined();
    const hash = await remember({ stampsRequired: 4 });
    expect(await images.findPng(hash, 5, '1x')).toBeUndefined();
    expect(await images.findPng(hash, 4, '1x')).toBeDefined();
    const later = createStripDesign({ ...LOOKS, stampColor: '#010205' }, []);
    expect(await images.findPng(images.hashDesign(later), 1, '1x')).toBeUndefined();
    await images.remember(STORE, later);
    expect(await images.findPng(images.hashDesign(later), 1, '1x')).toBeDefined();
  });

  it('of a store are not kept waiting by the flood of another', async () => {
    const flood = await Promise.all(
      Array.from({ length: 60 }, (_, i) =>
        remember({ stampColor: `#AA00${String(i + 10)}` }, images, 77),
      ),
    );
    const hash = await remember({ stampColor: '#010206' }, images, 78);
    let finished = 0;
    const drawn = flood.map((one) => images.findPng(one, 1, '3x').then(() => finished++));
    await images.findPng(hash, 1, '1x');
    const before = finished;
    await Promise.all(drawn);
    expect(finished).toBe(60);
    expect(before).toBeLessThan(20);
  });

  it('take no more room than they may: the oldest go first', async () => {
    const tight = await startService({ STRIP_IMAGES_KEPT_MB: '1' });
    try {
      const theirs = tight.app.get(StripImages, { strict: false });
      const pool = tight.app.get(Pool);
      const old = 'a'.repeat(32);
      await pool.query(
        `insert into strip_images (hash, name, png, drawn_at)
         select $1, i::text, decode(repeat('00', 1000000), 'hex'), now() - interval '1 day' from generate_series(1, 40) i`,
        [old],
      );
      const png = await speckled(STRIP.width, STRIP.height).png().toBuffer();
      const picture = createHash('sha256').update(png).digest('hex');
      await pool.query('insert into pictures (hash, account_id, png) values ($1, 1, $2)', [
        picture,
        png,
      ]);
      // Each takes some hundred kilobytes, so after less than a hundred of them the table is looked at.
      const looks = { stripType: 'image' as const, stripPicture: picture, stampsRequired: 21 };
      for (const cardColor of ['#000000', '#FFFFFF', '#6B4226']) {
        const hash = await remember({ ...looks, cardColor }, theirs);
        for (let filled = 0; filled <= 21; filled++) {
          await theirs.findPng(hash, filled, '3x');
          await theirs.findPng(hash, filled, 'hero');
        }
      }
      const { rows } = await pool.query<{ old: number }>(
        'select count(*)::int as old from strip_images where hash = $1',
        [old],
      );
      expect(rows).toEqual([{ old: 0 }]);
    } finally {
      await tight.stop();
    }
  });
});
