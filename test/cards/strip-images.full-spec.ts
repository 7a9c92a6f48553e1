import { beforeAll, describe, expect, it } from '@jest/globals';
import { Pool } from 'pg';
import sharp from 'sharp';
import type { CardJson } from '#loyalty/cards/card.dto.js';
import { card } from '#loyalty/cards/card.js';
import {
  createStripDesign,
  toLogoUrl,
  STRIP_SIZES,
  toStripUrl,
  type StripDesign,
} from '#outbound/card-images/strip-design.js';
import { CardImages } from '#outbound/card-images/card-images.service.js';
import { expectFailure, expectRefused, useService } from '../support/http/contract.js';
import {
  jpegWithScans,
  photograph,
  speckled,
  pixelAt,
  readPixels,
  plainPng,
  pngChunk,
  quarters,
  type Pixels,
} from '../support/fixtures/pictures.js';
import type { ApiResponse } from '../support/services/service.js';

const service = useService();
const store = service.useStore();
let small: Buffer;

beforeAll(async () => {
  small = await quarters(100, 60).png().toBuffer();
});

const newCard = async (client = store, fields: object = {}) => {
  const card = { name: 'Picture card', ...fields };
  return (await client.post<CardJson>(`${client.store}/cards`, { card })).body;
};

const put = (id: number | string, bytes: Uint8Array, type = 'image/png', client = store) =>
  client.send<CardJson>('PUT', `${client.store}/cards/${id}/strip_image`, new Uint8Array(bytes), {
    'content-type': type,
  });

/** The design that a pass of the card would show. */
async function designOf({ id }: CardJson): Promise<StripDesign> {
  const { rows } = await service.running.app
    .get(Pool)
    .query(`select state from ${card.table} where id = $1`, [id]);
  return createStripDesign(rows[0].state, []);
}

async function remembered(card: CardJson): Promise<{ hash: string; design: StripDesign }> {
  const design = await designOf(card);
  const images = service.running.app.get(CardImages, { strict: false });
  return { hash: await images.remember(store.accountId, design), design };
}

/** A public image, without a token. */
const fetched = (url: string, init: RequestInit = {}) =>
  fetch(url.replace(/^/, service.running.baseUrl), init);

/** Fetches the largest strip image of a card without stamps. */
async function fetchStrip(card: CardJson): Promise<Pixels> {
  const { hash } = await remembered(card);
  const response = await fetched(toStripUrl('', hash, 0, '3x'));
  expect(response.status).toBe(200);
  return readPixels(new Uint8Array(await response.arrayBuffer()));
}

function expectColor(actual: number[], expected: number[]) {
  const differences = actual.map((value, i) => Math.abs(value - (expected[i] ?? NaN)));
  expect([Math.max(...differences) <= 6, actual, expected]).toEqual([true, actual, expected]);
}

/** As the header of a PNG says (RFC 2083, section 4.1.1). */
const colourType = (png: Buffer) => (png[25] === 3 ? 'palette' : 'true colour');

/** Corners lie outside of all stamps. */
function corners(pixels: Pixels): number[][] {
  const places = [
    [8, 8],
    [1116, 8],
    [8, 423],
    [1116, 423],
  ] as const;
  return places.map(([x, y]) => pixelAt(pixels, x, y));
}

const BLACK = [0, 0, 0];
const [RED, GREEN, BLUE, WHITE] = [
  [220, 30, 30],
  [30, 180, 60],
  [40, 60, 210],
  [250, 250, 250],
];

const expectCorners = (pixels: Pixels, expected: (number[] | undefined)[]) => {
  for (const [i, corner] of corners(pixels).entries()) expectColor(corner, expected[i] ?? []);
};

describe('uploading', () => {
  it('STRIP-01 The response to the picture of a strip is the card, whose `strip_type` is `image` from then on', async () => {
    for (const type of ['png', 'jpeg', 'webp'] as const) {
      const card = await newCard(store, { strip_type: 'preset', strip_preset: 'books' });
      const picture = await quarters(300, 100).toFormat(type, { quality: 100 }).toBuffer();
      const response = await put(card.id, picture, `image/${type}`);
      expect(response.status).toBe(200);
      const { updated_at, ...rest } = response.body;
      expect(rest).toEqual({
        ...Object.fromEntries(Object.entries(card).filter(([key]) => key !== 'updated_at')),
        strip_type: 'image',
      });
      expect(updated_at > card.updated_at).toBe(true);
      expect((await store.get(`${store.store}/cards/${card.id}`)).body).toEqual(response.body);
      expectCorners(await fetchStrip(card), [RED, GREEN, BLUE, WHITE]);
    }
  });

  it('STRIP-02 A picture may be PNG, JPEG (`image/jpg` too) or WebP, also as `application/octet-stream`; any other media type is 415', async () => {
    const { id } = await newCard();
    expect((await put(id, small, 'IMAGE/PNG; x=y')).status).toBe(200);
    const jpeg = await sharp(small).jpeg().toBuffer();
    for (const type of ['image/jpeg', 'image/jpg', 'Image/JPG; charset=binary']) {
      expect((await put(id, jpeg, type)).status).toBe(200);
    }
    const webp = await sharp(small).webp().toBuffer();
    for (const picture of [small, jpeg, webp]) {
      expect((await put(id, picture, 'application/octet-stream')).status).toBe(200);
    }
    expectRefused(await put(id, Buffer.from('GIF89a'), 'application/octet-stream'), 'strip_image');
    expectRefused(await put(id, small, 'image/jpg'), 'strip_image');
    for (const type of [
      'image/svg+xml',
      'image/gif',
      'image/png2',
      'application/json',
      'text/plain',
    ]) {
      expectFailure(await put(id, small, type), 415, 'unsupported_media_type');
    }
    const without = await fetch(`${store.baseUrl}${store.store}/cards/${id}/strip_image`, {
      method: 'PUT',
      headers: { authorization: `Bearer ${store.token}` },
    });
    expect(without.status).toBe(422);
    const json = await store.send('PATCH', `${store.store}/cards/${id}`, new Uint8Array(small), {
      'content-type': 'image/png',
    });
    expectFailure(json, 415, 'unsupported_media_type');
  });

  it('STRIP-03 A picture of 2 MiB is taken, and a larger one is 413', async () => {
    const { id } = await newCard();
    const noise = (length: number) => pngChunk('teXt', Buffer.alloc(length));
    const around = plainPng(10, 10, [noise(0)]).length;
    const maxBytes = 2 * 1024 * 1024;
    expect((await put(id, plainPng(10, 10, [noise(maxBytes - around)]))).status).toBe(200);
    const larger = plainPng(10, 10, [noise(maxBytes - around + 1)]);
    expectFailure(await put(id, larger), 413, 'payload_too_large');
  });

  it('STRIP-04 The content of a picture is checked: whatever is no whole picture of its type is 422 `strip_image`, and so is no body', async () => {
    const card = await newCard();
    const jpeg = await quarters(300, 100).jpeg().toBuffer();
    const webp = await quarters(300, 100).webp().toBuffer();
    const svg = Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>');
    const magic = small.subarray(0, 8);
    const cases: [string, Uint8Array, string?][] = [
      ['nothing', Buffer.alloc(0)],
      ['SVG', svg],
      ['SVG behind the first bytes of PNG', Buffer.concat([magic, svg])],
      ['JPEG said to be PNG', jpeg],
      ['PNG said to be JPEG', small, 'image/jpeg'],
      ['half a PNG', small.subarray(0, small.length / 2)],
      ['half a JPEG', jpeg.subarray(0, jpeg.length / 2), 'image/jpeg'],
      ['half a WebP', webp.subarray(0, webp.length / 2), 'image/webp'],
      ['a JPEG of nothing', Buffer.from([0xff, 0xd8, 0xff]), 'image/jpeg'],
    ];
    for (const [what, bytes, type] of cases) {
      const response = await put(card.id, bytes, type);
      expect([what, response.status]).toEqual([what, 422]);
      expectRefused(response, 'strip_image');
    }
    expect((await store.get(`${store.store}/cards/${card.id}`)).body).toEqual(card);
  });

  it('STRIP-05 A picture of more than 25 megapixels is 422 `strip_image`, however few bytes it takes', async () => {
    const { id } = await newCard();
    expect((await put(id, plainPng(5000, 5000))).status).toBe(200);
    expectRefused(await put(id, plainPng(5001, 5000)), 'strip_image');
    expectRefused(await put(id, plainPng(25_000_001, 1)), 'strip_image');
  });

  it('STRIP-06 An unknown card, or one of another store, is 404 before the picture is checked', async () => {
    expectFailure(await put(999_999, small), 404, 'not_found');
    expectFailure(await put('one', Buffer.from('no picture')), 404, 'not_found');
    const otherStore = await service.newStore();
    const { id } = await newCard(otherStore);
    expectFailure(await put(id, Buffer.from('no picture')), 404, 'not_found');
  });

  it('STRIP-07 The picture is turned upright as its EXIF data says, and cut to 1125 by 432 pixels around its centre', async () => {
    const card = await newCard();
    // As it lies in a camera held sideways: upright, its corners are blue, red, white, green.
    const sideways = quarters(432, 1125).withMetadata({ orientation: 6 });
    await put(card.id, await sideways.jpeg({ quality: 100 }).toBuffer(), 'image/jpeg');
    expectCorners(await fetchStrip(card), [BLUE, RED, WHITE, GREEN]);

    const tall = await newCard();
    await put(tall.id, await quarters(500, 1500).png().toBuffer());
    expectCorners(await fetchStrip(tall), [RED, GREEN, BLUE, WHITE]);
  });

  it('STRIP-08 Nothing but the pixels of a picture is kept: no EXIF, no XMP, no profile', async () => {
    const card = await newCard();
    const exif = { IFD0: { Artist: 'Somebody Private' }, IFD3: { GPSLatitude: '48/1 51/1 0/1' } };
    const jpeg = await quarters(200, 90).withExif(exif).withXmp('<x>Private</x>').jpeg().toBuffer();
    expect(jpeg.toString('latin1')).toContain('Somebody Private');
    expect((await put(card.id, jpeg, 'image/jpeg')).status).toBe(200);
    const { layer } = await designOf(card);
    const { rows } = await service.running.app
      .get(Pool)
      .query<{ png: Buffer }>('select png from pictures where hash = $1', [
        'picture' in layer ? layer.picture : '',
      ]);
    const {
      width,
      height,
      format,
      exif: storedExif,
      xmp,
      icc,
    } = await sharp(rows[0]?.png).metadata();
    expect([width, height, format, storedExif, xmp, icc]).toEqual([1125, 432, 'png', ...Array(3)]);
    expect(rows[0]?.png.toString('latin1')).not.toContain('Private');
  });

  it('STRIP-09 Of an animation the first frame is taken', async () => {
    const plain = (background: string) => ({
      create: { width: 60, height: 60, channels: 3 as const, background },
    });
    const frames = await Promise.all(
      ['#DC1E1E', '#1EB43C'].map((color) => sharp(plain(color)).png().toBuffer()),
    );
    const webp = await sharp(frames, { join: { animated: true } })
      .webp({ lossless: true })
      .toBuffer();
    expect((await sharp(webp).metadata()).pages).toBe(2);
    const card = await newCard();
    expect((await put(card.id, webp, 'image/webp')).status).toBe(200);
    expectCorners(await fetchStrip(card), [RED, RED, RED, RED]);

    const frame = Buffer.alloc(26);
    frame.writeUInt32BE(40, 4);
    frame.writeUInt32BE(40, 8);
    const animated = [
      pngChunk('acTL', Buffer.from([0, 0, 0, 2, 0, 0, 0, 0])),
      pngChunk('fcTL', frame),
    ];
    const response = await put(card.id, plainPng(40, 40, animated));
    expect(response.status).toBe(200);
    expectCorners(await fetchStrip(card), [BLACK, BLACK, BLACK, BLACK]);
  });

  it('STRIP-10 Sending the same picture again changes nothing', async () => {
    const { id } = await newCard();
    const first = await put(id, small);
    expect((await put(id, small)).body).toEqual(first.body);
    await store.patch(`${store.store}/cards/${id}`, { card: { strip_type: 'color' } });
    expect((await put(id, small)).body.strip_type).toBe('image');
    const path = `${store.store}/history?card_id=${id}&type=card.strip_image_set`;
    expect((await store.get<unknown[]>(path)).body).toHaveLength(2);
  });

  it('STRIP-11 A picture is taken on an archived card too, and with an `Idempotency-Key`', async () => {
    const { id } = await newCard();
    await store.post(`${store.store}/cards/${id}/archive`);
    const path = `${store.store}/cards/${id}/strip_image`;
    const headers = { 'content-type': 'image/png', 'idempotency-key': `picture-${id}` };
    const first = await store.send('PUT', path, new Uint8Array(small), headers);
    const again: ApiResponse = await store.send('PUT', path, new Uint8Array(small), headers);
    expect([first.status, again.status]).toEqual([200, 200]);
    expect(again.headers.get('idempotent-replayed')).toBe('true');
    expect(again.body).toEqual(first.body);
    const otherResponse = await store.send('PUT', path, new Uint8Array(plainPng(5, 5)), headers);
    expectFailure(otherResponse, 422, 'idempotency_key_reused');
  });

  it('STRIP-12 A store keeps at most 1,000 different pictures; one more is 422 `base` with the code `limit_reached`', async () => {
    const full = await service.newStore();
    const { id } = await newCard(full);
    await service.running.database.query(
      `insert into pictures (hash, account_id, png)
       select lpad(to_hex(n), 64, '0'), $1, '' from generate_series(1, 980) n`,
      [full.accountId],
    );
    const picture = (i: number) =>
      sharp({ create: { width: 9, height: 9, channels: 3, background: { r: i, g: 0, b: 0 } } })
        .png()
        .toBuffer();
    for (let i = 0; i < 20; i++) {
      expect((await put(id, await picture(i), 'image/png', full)).status).toBe(200);
    }
    expectRefused(await put(id, await picture(20), 'image/png', full), 'base', 'limit_reached');
    expect((await put(id, await picture(3), 'image/png', full)).status).toBe(200);
  });
});

describe('decoding what was uploaded', () => {
  it('STRIP-16 A JPEG of more than 100 scans is 422 `strip_image`, as is a picture that takes more than 10 seconds of processor time to decode', async () => {
    const { id } = await newCard();
    expect((await put(id, jpegWithScans(100), 'image/jpeg')).status).toBe(200);
    expectRefused(await put(id, jpegWithScans(101), 'image/jpeg'), 'strip_image');
    // Decoding it would take a minute of a processor.
    const slow = await put(id, jpegWithScans(24_000, 5000), 'image/jpeg');
    if (slow.status === 503) expectFailure(slow, 503, 'unavailable');
    else expectRefused(slow, 'strip_image');
  });

  it("STRIP-17 Uploads of one store, however many and slow, do not make another store's upload fail", async () => {
    const busy = await service.newStore();
    const { id } = await newCard(busy);
    const { id: own } = await newCard();
    const slow = await sharp({
      create: { width: 3000, height: 3000, channels: 4, background: '#A1B2C3' },
    })
      .toColourspace('rgb16')
      .png()
      .toBuffer();
    let finished = 0;
    const uploads = Array.from({ length: 5 }, () =>
      put(id, slow, 'image/png', busy)
        .then(({ status }) => status)
        .finally(() => finished++),
    );
    const responses = Promise.allSettled(uploads);
    expect((await put(own, small)).status).toBe(200);
    expect(finished).toBeLessThan(5);
    // Where decoding waits for longer than a request may take, the connection is closed (ERR-21).
    for (const response of await responses) {
      const outcome =
        response.status === 'fulfilled' ? response.value : String(response.reason.cause);
      expect(`${outcome}`).toMatch(/^(200|503)$|other side closed|ECONNRESET/);
    }
  });
});

describe('the public images', () => {
  it('STRIP-13 The public images of a card are PNGs of 375 by 144, 750 by 288, 1125 by 432 and 1032 by 336 pixels, for each number of filled stamps; the logo has 660 by 660', async () => {
    const card = await newCard(store, { stamps_required: 3 });
    const { hash } = await remembered(card);
    const sizes = { '1x': [375, 144], '2x': [750, 288], '3x': [1125, 432], hero: [1032, 336] };
    for (const filled of [0, 1, 2, 3]) {
      for (const size of ['1x', '2x', '3x', 'hero'] as const) {
        const response = await fetched(toStripUrl('', hash, filled, size));
        expect([response.status, response.headers.get('content-type')]).toEqual([200, 'image/png']);
        const { width, height, format } = await sharp(await response.arrayBuffer()).metadata();
        expect([format, width, height]).toEqual(['png', ...sizes[size]]);
      }
    }
    const logo = await fetched(toLogoUrl('', hash));
    const { width, height } = await sharp(await logo.arrayBuffer()).metadata();
    expect([width, height]).toEqual([660, 660]);
  });

  it('STRIP-18 A strip is lossless where it is drawn, or its picture leaves room for that in the pass', async () => {
    const photo = await (await photograph(1125, 432)).png().toBuffer();
    const { body: card } = await put((await newCard()).id, photo);
    const { hash } = await remembered(card);
    const bytes = { palette: 0, full: 0 };
    for (const size of ['1x', '2x', '3x'] as const) {
      const png = Buffer.from(await (await fetched(toStripUrl('', hash, 3, size))).arrayBuffer());
      expect(colourType(png)).toBe('palette');
      const { width, height } = STRIP_SIZES[size];
      const full = await sharp(photo).resize(width, height).png().toBuffer();
      bytes.palette += png.length;
      bytes.full += full.length;
      const [drawn, expectedPixels] = [await readPixels(png), await readPixels(full)];
      // A corner of 32 pixels, where no stamp is: as light and as coloured as before.
      const mean = (pixels: Pixels, channel: number) =>
        Array.from(
          { length: 1024 },
          (_, i) => pixelAt(pixels, i % 32, i >> 5)[channel] ?? 0,
        ).reduce((sum, value) => sum + value / 1024, 0);
      for (const channel of [0, 1, 2]) {
        expect(Math.abs(mean(drawn, channel) - mean(expectedPixels, channel))).toBeLessThan(2);
      }
    }
    expect([bytes.full > 588 * 1024, bytes.palette < 240 * 1024, bytes]).toEqual([
      true,
      true,
      bytes,
    ]);
    const flat = await sharp({
      create: { width: 1125, height: 432, channels: 3, background: '#C01020' },
    })
      .composite([
        {
          input: Buffer.from(
            '<svg width="1125" height="432"><path d="M0 0h1125v432z" fill="#1060C0"/></svg>',
          ),
        },
      ])
      .png()
      .toBuffer();
    const { body: plain } = await put((await newCard(store, { strip_opacity: 100 })).id, flat);
    const remembering = await remembered(plain);
    for (const size of ['1x', '2x', '3x'] as const) {
      const url = toStripUrl('', remembering.hash, 3, size);
      const png = Buffer.from(await (await fetched(url)).arrayBuffer());
      expect(colourType(png)).toBe('true colour');
      const pixels = await readPixels(png);
      expect(pixelAt(pixels, 1, pixels.height - 2)).toEqual([0xc0, 0x10, 0x20]);
      expect(pixelAt(pixels, pixels.width - 2, 1)).toEqual([0x10, 0x60, 0xc0]);
    }
    for (const drawn of [{}, { strip_type: 'preset', strip_preset: 'coffee' }]) {
      const { hash: drawnHash } = await remembered(await newCard(store, drawn));
      const png = await (await fetched(toStripUrl('', drawnHash, 3, '3x'))).arrayBuffer();
      expect(colourType(Buffer.from(png))).toBe('true colour');
    }
  });

  it('STRIP-19 The strips of a pass take less than 220 KB, whatever the picture: its fine detail is softened first', async () => {
    const noise = await (await speckled(1125, 432)).png().toBuffer();
    const { body: card } = await put((await newCard()).id, noise);
    const { hash } = await remembered(card);
    let bytes = 0;
    for (const size of ['1x', '2x', '3x'] as const) {
      const png = Buffer.from(await (await fetched(toStripUrl('', hash, 3, size))).arrayBuffer());
      expect(colourType(png)).toBe('palette');
      bytes += png.length;
    }
    expect(bytes).toBeLessThan(220 * 1024);
  });

  it('STRIP-14 Public images are immutable and have an `ETag`, for GET and HEAD', async () => {
    const { hash } = await remembered(await newCard());
    for (const url of [toStripUrl('', hash, 1, '1x'), toLogoUrl('', hash)]) {
      const response = await fetched(url);
      const { headers } = response;
      expect(headers.get('cache-control')).toBe('public, max-age=31536000, immutable');
      expect(headers.get('cross-origin-resource-policy')).toBe('cross-origin');
      const etag = headers.get('etag') ?? '';
      expect(etag).toMatch(/^"[^"]+"$/);
      for (const ifNoneMatch of [etag, `W/${etag}`, `"other", ${etag}`, '*']) {
        const same = await fetched(url, { headers: { 'if-none-match': ifNoneMatch } });
        expect([same.status, await same.text(), same.headers.get('etag')]).toEqual([304, '', etag]);
      }
      expect((await fetched(url, { headers: { 'if-none-match': '"other"' } })).status).toBe(200);
      const head = await fetched(url, { method: 'HEAD' });
      expect([head.status, await head.text(), head.headers.get('etag')]).toEqual([200, '', etag]);
    }
  });

  it('CARD-63 While `strip_type` is `preset`, `strip_color` tints the preset; with null it has its own colours', async () => {
    const drawing = { strip_type: 'preset', strip_preset: 'barber', card_color: '#102030' };
    const corner = async (strip_color: string | null) =>
      pixelAt(await fetchStrip(await newCard(store, { ...drawing, strip_color })), 2, 2);
    // The corner has a stripe of the pattern, five per cent of white.
    expectColor(await corner('#3E7A2E'), [72, 129, 56]);
    expectColor(await corner(null), [42, 55, 77]);
  });

  it('STRIP-15 An unknown address below `/img` is 404, and no such response is cached', async () => {
    const { hash } = await remembered(await newCard(store, { stamps_required: 3 }));
    const paths = [
      toStripUrl('', hash, 4, '1x'),
      toStripUrl('', '0'.repeat(32), 1, '1x'),
      toLogoUrl('', '0'.repeat(32)),
      `/img/strip/${hash.toUpperCase()}/1@1x.png`,
      ...[
        '01@1x.png',
        '-1@1x.png',
        '1@4x.png',
        '1@toString.png',
        '1.png',
        '1@1x.jpg',
        '1@1x.png.png',
      ].map((file) => `/img/strip/${hash}/${file}`),
      `/img/logo/${hash}`,
      `/img/logo/..%2f${hash}.png`,
      `/img/strip/${hash}`,
    ];
    for (const path of paths) {
      const response = await fetched(path);
      expect([path, response.status]).toEqual([path, 404]);
      expect(await response.json()).toMatchObject({ code: 'not_found' });
      expect(response.headers.get('cache-control') ?? 'no-store').toBe('no-store');
    }
  });
});
