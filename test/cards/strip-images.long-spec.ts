import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createHash } from 'node:crypto';
import { Pool } from 'pg';
import sharp from 'sharp';
import { STAMP_ICONS, STRIP_PRESETS } from '#loyalty/cards/card-appearance.js';
import { arrangeStamps, STRIP } from '#loyalty/cards/stamp-grid.js';
import {
  createStripDesign,
  STRIP_SIZES,
  type StripAppearance,
  type StripSize,
} from '#outbound/card-images/strip-design.js';
import { CardImages } from '#outbound/card-images/card-images.service.js';
import {
  PHOTOGRAPHS,
  pixelAt,
  readPixels,
  speckled,
  quarters,
  type Pixels,
} from '../support/fixtures/pictures.js';
import { eventually } from '../support/jest/eventually.js';
import { startService, type LocalService } from '../support/services/service.js';

const FIXTURES = 'test/support/fixtures/strip-sheets';
const STORE = 1;
const COUNTS = Array.from({ length: 21 }, (_, index) => index + 1);
const APPEARANCE: StripAppearance = {
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
let images: CardImages;
/** Hashes of the stored pictures, by name. */
const pictures = new Map<string, string>();

beforeAll(async () => {
  service = await startService();
  images = service.app.get(CardImages, { strict: false });
  await addPicture('speckled', await speckled(STRIP.width, STRIP.height).png().toBuffer());
  await addPicture('photo', await renderPhoto());
});
afterAll(() => service.stop());

async function addPicture(name: string, png: Buffer): Promise<void> {
  const hash = createHash('sha256').update(png).digest('hex');
  await service.app
    .get(Pool)
    .query(
      'insert into pictures (hash, account_id, png) values ($1, $2, $3) on conflict do nothing',
      [hash, STORE, png],
    );
  pictures.set(name, hash);
}

/** Renders something like a photograph: soft, and light on one side. */
function renderPhoto(): Promise<Buffer> {
  return quarters(8, 4)
    .resize(STRIP.width, STRIP.height, { fit: 'fill', kernel: 'cubic' })
    .blur(30)
    .modulate({ saturation: 0.45, brightness: 0.8 })
    .png()
    .toBuffer();
}

type Rewards = Parameters<typeof createStripDesign>[1];
const createRewards = (...stamps: number[]): Rewards =>
  stamps.map((stampsRequired) => ({ stampsRequired, active: true }));

const withPicture = (name: string): Partial<StripAppearance> => ({
  stripType: 'image',
  stripPicture: pictures.get(name) ?? '',
});

async function draw(
  appearance: Partial<StripAppearance>,
  filled: number,
  { rewards = [], size = '3x' }: { rewards?: Rewards; size?: StripSize } = {},
): Promise<Buffer> {
  const hash = await images.remember(
    STORE,
    createStripDesign({ ...APPEARANCE, ...appearance }, rewards),
  );
  const png = await images.findPng(hash, filled, size);
  if (!png) throw new Error('nothing was drawn');
  return png;
}

/** Composes images side by side, three in a row. */
async function composeSheet(pngs: Buffer[], { width, height }: { width: number; height: number }) {
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
 * Compares pixel by pixel, since another version of a library may draw edges a little differently. Palettes have 128
 * colours.
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

describe('strip images', () => {
  it.each([
    ['color', () => ({})],
    ['preset', () => ({ stripType: 'preset' as const, stripPreset: 'bakery', stripOpacity: 85 })],
    ['image', () => withPicture('photo')],
  ])(
    'match their fixture for every number of stamps on a strip of type %s',
    async (type, appearance) => {
      const pngs: Buffer[] = [];
      for (const stamps of COUNTS) {
        const rewards = createRewards(...new Set([Math.ceil(stamps / 2), stamps]));
        const filled = Math.floor((stamps * 2) / 3);
        pngs.push(
          await draw({ ...appearance(), stampsRequired: stamps }, filled, { rewards, size: '1x' }),
        );
      }
      await expectLikeFixture(type, await composeSheet(pngs, STRIP_SIZES['1x']));
    },
  );

  it('match their fixture for every preset, as hero images', async () => {
    const pngs: Buffer[] = [];
    for (const stripPreset of STRIP_PRESETS) {
      const appearance = { stripType: 'preset' as const, stripPreset, stampsRequired: 8 };
      const png = await draw(appearance, 5, { rewards: createRewards(8), size: 'hero' });
      pngs.push(await sharp(png).resize(344, 112).png().toBuffer());
    }
    await expectLikeFixture('presets', await composeSheet(pngs, { width: 344, height: 112 }));
  });

  it('match their fixture for every icon, filled, empty and as a logo', async () => {
    const pngs: Buffer[] = [];
    for (const stampIcon of STAMP_ICONS) {
      const appearance = {
        stampIcon,
        stampsRequired: 2,
        cardColor: '#1F4E5F',
        stampColor: '#1F4E5F',
      };
      const strip = await draw(appearance, 1, { size: '1x' });
      const hash = await images.remember(
        STORE,
        createStripDesign({ ...APPEARANCE, ...appearance }, []),
      );
      const logo = await sharp(await images.findIconPng(hash, 'program'))
        .resize(100, 100)
        .toBuffer();
      pngs.push(
        await sharp(strip)
          .composite([{ input: logo, left: 4, top: 22 }])
          .toBuffer(),
      );
    }
    await expectLikeFixture('icons', await composeSheet(pngs, STRIP_SIZES['1x']));
  });
});

/** Marks the pixels of stamps, and what is drawn around them. */
function maskStamps(stamps: number): Uint8Array {
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

/** Counts the pixels outside of the stamps that are not as expected. */
function countDifferences(
  stamps: number,
  actual: Pixels,
  expected: Pixels | number[],
  tolerance = 1,
): number {
  const mask = maskStamps(stamps);
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
  it.each([1, 5, 10, 21])('at 100 shows the picture around %i stamps unchanged', async (stamps) => {
    const source = await readPixels(await renderPhoto());
    const appearance = { ...withPicture('photo'), stampsRequired: stamps };
    const pixels = await readPixels(await draw(appearance, 1, { rewards: createRewards(stamps) }));
    // As far as 256 colours can show.
    const limit = STRIP.width * STRIP.height * 0.005;
    expect(countDifferences(stamps, pixels, source, 8)).toBeLessThan(limit);
  });

  it.each([
    ['a picture', () => withPicture('speckled')],
    ['a preset', () => ({ stripType: 'preset' as const, stripPreset: 'books' })],
    ['a colour', () => ({ stripColor: '#FF0000' })],
  ])("at 0 shows the card's colour instead of %s", async (_what, appearance) => {
    const pixels = await readPixels(
      await draw({ ...appearance(), stripOpacity: 0, cardColor: '#123456' }, 1),
    );
    expect(countDifferences(10, pixels, [0x12, 0x34, 0x56])).toBe(0);
  });

  it('at 25 mixes a quarter of the strip’s colour with the card’s', async () => {
    const appearance = { stripColor: '#FFFFFF', cardColor: '#000000', stripOpacity: 25 };
    expect(countDifferences(10, await readPixels(await draw(appearance, 1)), [64, 64, 64])).toBe(0);
  });
});

it('a strip image fills stamps in order, each where the grid places it', async () => {
  // The place is beside the icon, where only the stamp's background shows.
  const beside = (stamps: number, index: number) => {
    const { cellSize, centres } = arrangeStamps(stamps);
    const { x = 0, y = 0 } = centres[index] ?? {};
    return [x + cellSize * 0.38, y] as const;
  };
  const appearance = { stampsRequired: 7, cardColor: '#000000', stampBackgroundColor: '#FFFFFF' };
  for (let filled = 0; filled <= 7; filled++) {
    const pixels = await readPixels(await draw(appearance, filled));
    const white = COUNTS.slice(0, 7).map(
      (_, index) => (pixelAt(pixels, ...beside(7, index))[0] ?? 0) > 200,
    );
    expect(white).toEqual(COUNTS.slice(0, 7).map((count) => count <= filled));
  }
});

it('a strip image marks the stamps that unlock a reward, and no others', async () => {
  const appearance = { stampsRequired: 12, stampColor: '#FF0000', cardColor: '#000000' };
  const { cellSize, centres } = arrangeStamps(12);
  for (const marked of [[], [1], [12], [3, 7, 12]]) {
    const pixels = await readPixels(
      await draw(appearance, 0, { rewards: createRewards(...marked) }),
    );
    // Within the badge, below its present.
    const badges = centres.map(({ x, y }) =>
      pixelAt(pixels, x + cellSize * 0.31, y - cellSize * 0.185),
    );
    const filled = badges.flatMap(([red = 0, green = 0], index) =>
      red > 180 && green < 90 ? [index + 1] : [],
    );
    expect(filled).toEqual(marked);
  }
});

describe('stored strip images', () => {
  const listStored = async (hash: string) => {
    const { rows } = await service.app
      .get(Pool)
      .query<{ name: string }>('select name from card_images where hash = $1 order by name', [
        hash,
      ]);
    return rows.map(({ name }) => name);
  };
  const remember = (appearance: Partial<StripAppearance>, target = images, store = STORE) =>
    target.remember(store, createStripDesign({ ...APPEARANCE, ...appearance }, []));

  it.each(Object.entries(PHOTOGRAPHS))(
    'of all sizes take less than 220 KB together with a picture of the kind %s',
    async (kind, paint) => {
      await addPicture(kind, await (await paint(STRIP.width, STRIP.height)).png().toBuffer());
      let bytes = 0;
      for (const size of ['1x', '2x', '3x'] as const) {
        bytes += (await draw(withPicture(kind), 3, { size })).length;
      }
      expect(bytes).toBeLessThan(220 * 1024);
    },
  );

  it('are drawn once for 20 requests at the same time and one afterwards', async () => {
    const hash = await remember({ stampColor: '#010203' });
    const requests = Array.from({ length: 20 }, () => images.findPng(hash, 3, '2x'));
    const [first, ...others] = await Promise.all(requests);
    // The same object: the image was drawn once.
    expect(others.every((bytes) => bytes === first)).toBe(true);
    expect(await images.findPng(hash, 3, '2x')).toBe(first);
    expect(await listStored(hash)).toEqual(['3@2x']);
  });

  it('are read from the table by another process, which draws nothing', async () => {
    const hash = await remember({ stampColor: '#010204' });
    const first = await images.findPng(hash, 3, '1x');
    const { database, environment } = service;
    const otherService = await startService(environment, {
      ...database,
      close: async () => undefined,
    });
    try {
      const otherImages = otherService.app.get(CardImages, { strict: false });
      expect(await otherImages.findPng(hash, 3, '1x')).toEqual(first);
      // Bytes that the design does not show can only come from the table.
      const { query } = service.database;
      await query("update card_images set png = 'not drawn' where hash = $1", [hash]);
      const third = await startService(environment, { ...database, close: async () => undefined });
      const png = await third.app.get(CardImages, { strict: false }).findPng(hash, 3, '1x');
      await third.stop();
      expect(png?.toString()).toBe('not drawn');
    } finally {
      await otherService.stop();
    }
  });

  it('are undefined for designs that were not remembered, and for more stamps than the card has', async () => {
    expect(await images.findPng('0'.repeat(32), 1, '1x')).toBeUndefined();
    const hash = await remember({ stampsRequired: 4 });
    expect(await images.findPng(hash, 5, '1x')).toBeUndefined();
    expect(await images.findPng(hash, 4, '1x')).toBeDefined();
    const later = createStripDesign({ ...APPEARANCE, stampColor: '#010205' }, []);
    expect(await images.findPng(images.hashDesign(later), 1, '1x')).toBeUndefined();
    await images.remember(STORE, later);
    expect(await images.findPng(images.hashDesign(later), 1, '1x')).toBeDefined();
  });

  it('of one store are drawn before most of the 60 that another store has requested', async () => {
    const flood = await Promise.all(
      Array.from({ length: 60 }, (_, i) =>
        remember({ stampColor: `#AA00${String(i + 10)}` }, images, 77),
      ),
    );
    const hash = await remember({ stampColor: '#010206' }, images, 78);
    let finished = 0;
    const drawings = flood.map((hash) => images.findPng(hash, 1, '3x').then(() => finished++));
    await images.findPng(hash, 1, '1x');
    const before = finished;
    await Promise.all(drawings);
    expect(finished).toBe(60);
    expect(before).toBeLessThan(20);
  });

  it('stay within STRIP_IMAGES_KEPT_MB because the oldest are deleted', async () => {
    const smallService = await startService({ STRIP_IMAGES_KEPT_MB: '1' });
    try {
      const otherImages = smallService.app.get(CardImages, { strict: false });
      const pool = smallService.app.get(Pool);
      const old = 'a'.repeat(32);
      await pool.query(
        `insert into card_images (hash, name, png, drawn_at)
         select $1, i::text, decode(repeat('00', 1000000), 'hex'), now() - interval '1 day' from generate_series(1, 40) i`,
        [old],
      );
      const png = await speckled(STRIP.width, STRIP.height).png().toBuffer();
      const picture = createHash('sha256').update(png).digest('hex');
      await pool.query('insert into pictures (hash, account_id, png) values ($1, 1, $2)', [
        picture,
        png,
      ]);
      // Each takes some ten kilobytes, and the table is checked after 256 KB.
      const appearance = { stripType: 'image' as const, stripPicture: picture, stampsRequired: 21 };
      const hash = await remember(appearance, otherImages);
      for (let filled = 0; filled <= 21; filled++) {
        await otherImages.findPng(hash, filled, '3x');
        await otherImages.findPng(hash, filled, 'hero');
      }
      const countOld = async () =>
        (await pool.query('select from card_images where hash = $1', [old])).rowCount;
      await eventually(countOld, (count) => count === 0);
    } finally {
      await smallService.stop();
    }
  });
});
