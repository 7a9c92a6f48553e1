import { describe, expect, it } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { runInThisContext } from 'node:vm';
import { brotliDecompressSync } from 'node:zlib';
import sharp from 'sharp';
import { findBars } from './code128-bars.js';

type Reader = {
  prepareZXingModule: (options: { overrides: { wasmBinary: ArrayBuffer } }) => void;
  readBarcodes: (
    image: { data: Uint8ClampedArray; width: number; height: number },
    options: { formats: string[] },
  ) => Promise<{ format: string; text: string }[]>;
};

/** Reads barcodes with the decoder of the counter. */
function startReader(): Reader {
  const unpack = (name: string) =>
    brotliDecompressSync(readFileSync(new URL(`../../../data/${name}.br`, import.meta.url)));
  const reader = runInThisContext(`${unpack('zxing-reader.js').toString()};ZXingWASM`) as Reader;
  const wasm = new Uint8Array(unpack('zxing-reader.wasm'));
  reader.prepareZXingModule({ overrides: { wasmBinary: wasm.buffer } });
  return reader;
}

describe('findBars', () => {
  it('draws what a scanner reads', async () => {
    const reader = startReader();
    for (const text of ['K7Q2M9XA', '22222222', 'a B~!', 'ABCDEFGHIJKLMNOPQRST']) {
      const { path, width, height } = findBars(text);
      const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="${width * 2}" height="${height * 2}" viewBox="0 0 ${width} ${height}" shape-rendering="crispEdges"><path fill="#fff" d="M0 0h${width}v${height}H0z"/><path d="${path}"/></svg>`;
      const { data, info } = await sharp(Buffer.from(svg))
        .ensureAlpha()
        .raw()
        .toBuffer({ resolveWithObject: true });
      const image = { data: new Uint8ClampedArray(data), width: info.width, height: info.height };
      expect(await reader.readBarcodes(image, { formats: ['Code128'] })).toMatchObject([
        { format: 'Code128', text },
      ]);
    }
  });

  it('keeps ten modules free on both sides, and needs 143 for the code of a card', () => {
    const { path, width } = findBars('K7Q2M9XA');
    expect(width).toBe(143);
    expect(path).toMatch(/^M10 0h2v50/);
    expect(path).toMatch(/M131 0h2v50h-2z$/);
  });
});
