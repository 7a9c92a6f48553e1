import { crc32, deflateSync } from 'node:zlib';
import sharp from 'sharp';

export type Pixels = { data: Buffer; width: number; height: number; channels: number };

/** Red, green, blue and white, from the upper left by rows: shows which way up a picture is. */
export function quarters(width: number, height: number) {
  const colors = [
    [220, 30, 30],
    [30, 180, 60],
    [40, 60, 210],
    [250, 250, 250],
  ];
  const data = Buffer.alloc(width * height * 3);
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      const quarter = (y < height / 2 ? 0 : 2) + (x < width / 2 ? 0 : 1);
      data.set(colors[quarter] ?? [], (y * width + x) * 3);
    }
  }
  return sharp(data, { raw: { width, height, channels: 3 } });
}

/** Every pixel another, so that a shift by one would be noticed. */
export function speckled(width: number, height: number) {
  const data = Buffer.alloc(width * height * 3);
  let seed = 1;
  for (let i = 0; i < data.length; i++) {
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
    data[i] = seed >> 16;
  }
  return sharp(data, { raw: { width, height, channels: 3 } });
}

/** As hard to compress as a photograph: soft shades with fine detail all over. */
export async function photograph(width: number, height: number) {
  const size = { width, height, fit: 'fill', kernel: 'cubic' } as const;
  const shades = await quarters(8, 4)
    .resize(size)
    .blur(30)
    .modulate({ saturation: 0.45, brightness: 0.8 })
    .raw()
    .toBuffer();
  const detail = await speckled(Math.ceil(width / 2), Math.ceil(height / 2))
    .resize(size)
    .raw()
    .toBuffer();
  const data = shades.map((value, i) => Math.round(value * 0.95 + (detail[i] ?? 0) * 0.01));
  return sharp(data, { raw: { width, height, channels: 3 } });
}

/** Harder than any photograph: detail of all sizes, in all colours. */
export async function foliage(width: number, height: number) {
  const size = { width, height, fit: 'fill', kernel: 'cubic' } as const;
  const sum = new Float64Array(width * height * 3);
  for (const [coarseness, weight] of [
    [64, 0.3],
    [16, 0.4],
    [8, 0.5],
    [4, 0.5],
    [2, 0.4],
    [1, 0.2],
  ] as const) {
    const detail = await speckled(Math.ceil(width / coarseness), Math.ceil(height / coarseness))
      .resize(size)
      .raw()
      .toBuffer();
    detail.forEach((value, i) => (sum[i] = (sum[i] ?? 0) + (value - 128) * weight));
  }
  const data = Buffer.from(Uint8ClampedArray.from(sum, (value) => 128 + value).buffer);
  return sharp(data, { raw: { width, height, channels: 3 } });
}

/** Soft shades without any detail, which a palette turns into bands. */
export function gradient(width: number, height: number) {
  const data = Buffer.alloc(width * height * 3);
  for (let i = 0; i < width * height; i++) {
    const [x, y] = [(i % width) / width, Math.floor(i / width) / height];
    data.set([x * 255, y * 255, ((x + y) / 2) * 255], i * 3);
  }
  return sharp(data, { raw: { width, height, channels: 3 } });
}

/** What is hard to make small, each in its own way. */
export const PHOTOGRAPHS = { photograph, noise: speckled, foliage, gradient };

export async function pixelsOf(png: Uint8Array): Promise<Pixels> {
  const { data, info } = await sharp(png).raw().toBuffer({ resolveWithObject: true });
  return { data, width: info.width, height: info.height, channels: info.channels };
}

export function pixelAt({ data, width, channels }: Pixels, x: number, y: number): number[] {
  const start = (Math.round(y) * width + Math.round(x)) * channels;
  return [...data.subarray(start, start + 3)];
}

/** Black, one bit for each pixel: few bytes, however large it is. @param extra chunks before the pixels */
export function plainPng(width: number, height: number, extra: Buffer[] = []) {
  const size = Buffer.alloc(8);
  size.writeUInt32BE(width, 0);
  size.writeUInt32BE(height, 4);
  const rows = Buffer.alloc(height * (1 + Math.ceil(width / 8)));
  return Buffer.concat([
    Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'),
    pngChunk('IHDR', Buffer.concat([size, Buffer.from([1, 0, 0, 0, 0])])),
    ...extra,
    pngChunk('IDAT', deflateSync(rows)),
    pngChunk('IEND', Buffer.alloc(0)),
  ]);
}

export function pngChunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data]);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(data.length);
  const sum = Buffer.alloc(4);
  sum.writeUInt32BE(crc32(body));
  return Buffer.concat([length, body, sum]);
}

/** Of a JPEG: the length counts itself. */
export function jpegSegment(code: number, data: Uint8Array | number[]) {
  const header = Buffer.from([0xff, code, 0, 0]);
  header.writeUInt16BE(data.length + 2, 2);
  return Buffer.concat([header, Buffer.from(data)]);
}

/**
 * A grey progressive JPEG of few bytes, with any number of scans; each takes a pass over the picture.
 * @param between what comes before each scan but the first
 */
export function jpegWithScans(scans: number, size = 64, between: Uint8Array = Buffer.alloc(0)) {
  const blocks = Math.ceil(size / 8) ** 2;
  const dimension = [size >> 8, size & 255];
  /** A table with one code, 0, for one symbol. */
  const oneCode = (table: number, symbol: number) => [table, 1, ...Array(15).fill(0), symbol];
  const scan = (first: number, last: number, bits: number) =>
    Buffer.concat([
      jpegSegment(0xda, [1, 1, 0, first, last, 0]),
      Buffer.alloc(Math.ceil(bits / 8)),
    ]);
  // Symbol 0xE0 with 14 bits that are 0: the next 16,384 blocks have no coefficients.
  const ac = Buffer.concat([between, scan(1, 63, 15 * Math.ceil(blocks / 16_384))]);
  return Buffer.concat([
    Buffer.from([0xff, 0xd8]),
    jpegSegment(0xdb, [0, ...Array(64).fill(1)]),
    jpegSegment(0xc2, [8, ...dimension, ...dimension, 1, 1, 0x11, 0]),
    jpegSegment(0xc4, oneCode(0x00, 0)),
    jpegSegment(0xc4, oneCode(0x10, 0xe0)),
    scan(0, 0, blocks),
    ...Array<Uint8Array>(scans - 1).fill(ac),
    Buffer.from([0xff, 0xd9]),
  ]);
}
