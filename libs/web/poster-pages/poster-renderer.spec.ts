import { describe, expect, it } from '@jest/globals';
import sharp from 'sharp';
import type { Config } from '#configuration/config.js';
import { NotoFonts } from '#loyalty/posters/noto-fonts.service.js';
import { PosterFonts } from '#loyalty/posters/poster-fonts.service.js';
import { readQrCode } from '../../../test/support/browser/qr-codes.js';
import type { Drawing } from './drawing.js';
import { PAPERS } from './paper.js';
import type { PosterContent } from './poster-content.js';
import { layOutPoster } from './poster-layout.js';
import { PosterRenderer } from './poster-renderer.service.js';

const fonts = new PosterFonts({ posterFonts: null } as Config, new NotoFonts());
const letters = await fonts.loadLetters([]);

const drawing: Drawing = {
  width: 100,
  height: 150,
  margin: 0,
  bleed: 0,
  title: 'Ærø (1)',
  author: 'Café',
  lang: 'da',
  createdAt: '2026-01-02T03:04:05.000Z',
  shapes: [
    { kind: 'rectangle', x: 0, y: 0, width: 100, height: 150, radius: 0, fill: '#102030' },
    { kind: 'text', x: 5, y: 40, size: 20, weight: 'bold', text: 'Ærø', fill: '#FFFFFF' },
    { kind: 'disc', x: 50, y: 100, radius: 20, fill: '#FF0000' },
  ],
};
const renderDrawing = (format: 'pdf' | 'png' | 'svg', overrides: Partial<Drawing> = {}) =>
  new PosterRenderer().render(1, format, () => ({
    drawing: { ...drawing, ...overrides },
    letters,
  }));

describe('a poster document', () => {
  it.each(['pdf', 'png', 'svg'] as const)(
    'has the same %s bytes for the same drawing',
    async (format) => {
      expect((await renderDrawing(format)).equals(await renderDrawing(format))).toBe(true);
    },
  );

  it('declares in PDF its size, its print boxes, its language and embedded fonts', async () => {
    const pdf = (await renderDrawing('pdf', { margin: 20, bleed: 8 })).toString('latin1');
    expect(pdf).toContain('/MediaBox [0 0 140 190]');
    expect(pdf).toContain('/TrimBox [20 20 120 170]');
    expect(pdf).toContain('/BleedBox [12 12 128 178]');
    expect(pdf).toContain('/Lang (da)');
    expect(pdf).toMatch(/\/BaseFont \/[A-Z]{6}\+Inter-Bold/);
    expect(pdf).not.toContain('Helvetica');
    expect(pdf).toContain('(D:20260102030405Z)');
  });

  it.each(Object.entries(PAPERS))(
    'has 300 dots per inch in PNG on %s',
    async (_, { width, height }) => {
      const png = await renderDrawing('png', { width, height });
      const { density, ...size } = await sharp(png).metadata();
      expect(density).toBe(300);
      expect(size).toMatchObject({
        width: Math.round((width / 72) * 300),
        height: Math.round((height / 72) * 300),
      });
    },
  );

  it('contains no text of a user in SVG', async () => {
    expect((await renderDrawing('svg')).toString()).toMatch(
      /^<svg [^>]*>(<(rect|path|circle) [^<>]*\/>)+<\/svg>$/,
    );
  });
});

describe('the code of a poster on A4', () => {
  it('is readable from two metres by a full HD camera', async () => {
    const code = 'https://loyalty.corner-cafe.example/join/3kTMd9QwXzR7vB2nLc?src=qr';
    const poster: PosterContent = {
      design: 'rewards',
      title: 'Coffee club',
      storeName: 'Corner Café',
      logo: null,
      logoContainsName: true,
      locale: 'en',
      addressForm: null,
      offers: [],
      aim: 'Collect 10 stamps',
      stamps: { count: 10, icon: 'coffee', rewards: [] },
      colors: { ground: '#5B3A29', text: '#FFF3E0', stamps: '#FFE0B2' },
      code,
      address: 'loyalty.corner-cafe.example/join/3kTMd9QwXzR7vB2nLc',
      createdAt: '2026-01-01T00:00:00.000Z',
    };
    const png = await new PosterRenderer().render(1, 'png', () => ({
      drawing: layOutPoster(poster, PAPERS.a4, { bleed: false }, letters),
      letters,
    }));
    // Wide-angle lenses of phones show 2.77 m at that distance, on 1920 pixels.
    const height = Math.round((297 / 2770) * 1920);
    const photo = await sharp(await sharp(png).resize({ height }).png().toBuffer())
      .blur(0.7)
      .png()
      .toBuffer();
    // As readers do with what is small.
    const enlargedPhoto = await sharp(photo)
      .resize({ height: 4 * height })
      .png()
      .toBuffer();
    expect(await readQrCode(enlargedPhoto)).toBe(code);
  });
});

describe('fonts', () => {
  it('give a text the same width in every document', () => {
    const width = letters.width('Wörter, Æ', 'bold');
    const path = letters.outline('Wörter, Æ', 'bold', { x: 0, y: 0, size: 1000 });
    const xs = (path.match(/-?\d+(\.\d+)?/g) ?? []).map(Number).filter((_, i) => i % 2 === 0);
    expect(Math.max(...xs)).toBeLessThanOrEqual(width * 1000);
    expect(Math.max(...xs)).toBeGreaterThan(width * 1000 - 150);
  });

  it('are refused when a file of the operator is missing or no font', () => {
    for (const path of ['/nowhere.ttf', new URL(import.meta.url).pathname]) {
      expect(
        () =>
          new PosterFonts(
            { posterFonts: { regular: path, bold: path } } as Config,
            new NotoFonts(),
          ),
      ).toThrow(/^POSTER_FONTS: .* cannot be used/);
    }
  });
});
