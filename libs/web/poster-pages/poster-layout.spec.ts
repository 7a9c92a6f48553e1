import { describe, expect, it } from '@jest/globals';
import { computeContrast } from '#platform/kernel/contrast.js';
import type { Config } from '#configuration/config.js';
import { NotoFonts } from '#loyalty/posters/noto-fonts.service.js';
import { PosterFonts } from '#loyalty/posters/poster-fonts.service.js';
import type { Weight } from '#loyalty/posters/shaped-font.js';
import type { Drawing, DrawnShape } from './drawing.js';
import { BLEED, PAPERS, type PaperSize } from './paper.js';
import type { PosterContent } from './poster-content.js';

import { layOutPoster } from './poster-layout.js';
import type { Lettering } from './typesetter.js';

const fonts = await new PosterFonts({ posterFonts: null } as Config, new NotoFonts()).loadLetters(
  [],
);
const widths = new Map<string, number>();
/** Measures each text once: the same lines stand on every paper. */
const letters: Lettering = {
  width: (text, weight) => {
    const width = widths.get(`${weight} ${text}`) ?? fonts.width(text, weight);
    widths.set(`${weight} ${text}`, width);
    return width;
  },
  removeIllegible: (text, weight) => fonts.removeIllegible(text, weight),
};

const content: PosterContent = {
  design: 'rewards',
  title: 'Coffee club',
  storeName: 'Corner Café',
  logo: null,
  logoContainsName: true,
  locale: 'en',
  addressForm: null,
  offers: [{ reward: 'Free coffee', price: 'for 10 stamps' }],
  aim: 'Collect 10 stamps',
  stamps: { count: 10, icon: 'coffee', rewards: [10] },
  colors: { ground: '#5B3A29', text: '#FFF3E0', stamps: '#FFE0B2' },
  code: 'https://inkpad.example/join/3kTMd9QwXzR7vB2nLc?src=qr',
  address: 'inkpad.example/join/3kTMd9QwXzR7vB2nLc',
  createdAt: '2026-01-01T00:00:00.000Z',
};
const SIZES = Object.keys(PAPERS) as PaperSize[];

const REWARD = 'A whole cake of your choice, with candles and a table for eight on a Sunday';
const OFFERS = [3, 6, 10].map((stamps) => ({ reward: REWARD, price: `for ${stamps} stamps` }));
const LOGO = { png: Buffer.from('png'), width: 520, height: 200 };

const drawPoster = (
  overrides: Partial<PosterContent> = {},
  size: PaperSize = 'a4',
  { bleed = false, logo = null as typeof LOGO | null } = {},
) => layOutPoster({ ...content, ...overrides }, PAPERS[size], { bleed }, letters, logo);

type Box = { left: number; top: number; right: number; bottom: number };

const INK_SIZE = 1_000;
const inks = new Map<string, Box>();

/** Computes the box of the letters at `INK_SIZE`, once: the same lines stand on every paper. */
function measureInk(text: string, weight: Weight): Box {
  const key = `${weight} ${text}`;
  let ink = inks.get(key);
  if (!ink) {
    const path = fonts.outline(text, weight, { x: 0, y: 0, size: INK_SIZE });
    const numbers = (path.match(/-?\d+(\.\d+)?/g) ?? []).map(Number);
    const xs = numbers.filter((_, index) => index % 2 === 0);
    const ys = numbers.filter((_, index) => index % 2 === 1);
    ink = {
      left: Math.min(...xs),
      top: Math.min(...ys),
      right: Math.max(...xs),
      bottom: Math.max(...ys),
    };
    inks.set(key, ink);
  }
  return ink;
}

/** Computes the box that a shape really covers. */
function getBox(shape: DrawnShape): Box {
  switch (shape.kind) {
    case 'picture':
    case 'rectangle': {
      const { x, y, width, height } = shape;
      return { left: x, top: y, right: x + width, bottom: y + height };
    }
    case 'disc': {
      const { x, y, radius: r } = shape;
      return { left: x - r, top: y - r, right: x + r, bottom: y + r };
    }
    case 'path': {
      const side = shape.scale * (shape.path.startsWith('M4 4h7') ? measureCode(shape) : 24);
      return { left: shape.x, top: shape.y, right: shape.x + side, bottom: shape.y + side };
    }
    case 'turned':
      throw new Error('shapes that are turned repeat the others');
    case 'text': {
      const scale = shape.size / INK_SIZE;
      const ink = measureInk(shape.text, shape.weight);
      return {
        left: shape.x + ink.left * scale,
        top: shape.y + ink.top * scale,
        right: shape.x + ink.right * scale,
        bottom: shape.y + ink.bottom * scale,
      };
    }
  }
}

/** Measures a code by its three large squares, which lie in its corners, four modules from its edge. */
function measureCode({ path }: { path: string }): number {
  return Math.max(...[...path.matchAll(/M(\d+) 4h7v/g)].map(([, x]) => Number(x) + 7)) + 4;
}

const texts = ({ shapes }: Drawing) => shapes.filter((shape) => shape.kind === 'text');
const getCodeBox = ({ shapes }: Drawing) => {
  const code = shapes.find((shape) => shape.kind === 'path' && shape.path.startsWith('M4 4h7'));
  if (!code) throw new Error('there is no code');
  return getBox(code);
};
const getPanelBox = ({ shapes }: Drawing) => {
  const panel = shapes.findLast(
    (shape) => shape.kind === 'rectangle' && shape.fill === '#FFFFFF' && shape.radius > 0,
  );
  if (!panel) throw new Error('there is no panel');
  return getBox(panel);
};
const overlap = (a: Box, b: Box) =>
  a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
const within = (a: Box, b: Box) =>
  a.left >= b.left && a.top >= b.top && a.right <= b.right && a.bottom <= b.bottom;

/** Expects everything on the paper with a margin for printers, and nothing over anything else. */
function expectTidy(drawing: Drawing, size: PaperSize) {
  const { width, height } = PAPERS[size];
  const printable = { left: 14, top: 14, right: width - 14, bottom: height - 14 };
  const [code, panel] = [getCodeBox(drawing), getPanelBox(drawing)];
  const lines = texts(drawing).map((text) => ({ text: text.text, box: getBox(text) }));
  const discs = drawing.shapes.filter(({ kind }) => kind === 'disc').map(getBox);
  for (const { text, box } of lines) {
    expect([text, within(box, printable)]).toEqual([text, true]);
    expect([text, overlap(box, code)]).toEqual([text, false]);
    expect([text, within(box, panel) || !overlap(box, panel)]).toEqual([text, true]);
    expect([text, discs.filter((disc) => overlap(box, disc))]).toEqual([text, []]);
    const others = lines.filter(
      (otherLine) => otherLine.box !== box && overlap(box, otherLine.box),
    );
    expect([text, others]).toEqual([text, []]);
  }
  for (const disc of discs) expect(within(disc, printable) && !overlap(disc, panel)).toBe(true);
  for (const picture of drawing.shapes.filter(({ kind }) => kind === 'picture').map(getBox)) {
    expect(within(picture, printable) && !overlap(picture, panel)).toBe(true);
    for (const { text, box } of lines) expect([text, overlap(box, picture)]).toEqual([text, false]);
    for (const disc of discs) expect(overlap(disc, picture)).toBe(false);
  }
  expect(within(code, panel) && within(panel, printable)).toBe(true);
}

describe.each(SIZES)('a poster on %s', (size) => {
  it.each(
    [
      'X',
      'Coffee club',
      'Smørrebrød på Østerbro – gerne med æg',
      'Бонусная карта кофейни «Зебра»',
      'Donaudampfschifffahrtsgesellschaftskapitänsmützenabzeichen',
      'W'.repeat(255),
      'ÄÖÜ Éçñ jpqy '.repeat(19),
      'i '.repeat(127),
    ].map((title) => ({ title })),
  )('shows the whole title: $title', ({ title }) => {
    const drawing = drawPoster({ title }, size);
    expectTidy(drawing, size);
    const text = texts(drawing)
      .map(({ text }) => text)
      .join('')
      .replace(/\s/g, '');
    expect(text).toContain(title.replace(/\s/g, ''));
  });

  it('fits all texts at their maximum length', () => {
    const long = 'Wundervolle Überraschung '.repeat(10);
    const offers = [3, 7, 21].map((stamps) => ({ reward: long, price: `für ${stamps} Stempel` }));
    expectTidy(
      drawPoster(
        {
          title: 'W'.repeat(255),
          storeName: long,
          offers,
          locale: 'de',
          stamps: { count: 21, icon: 'star', rewards: [3, 7, 21] },
          address: `${'long.'.repeat(20)}example/join/3kTMd9QwXzR7vB2nLc`,
          code: `https://${'long.'.repeat(20)}example/join/3kTMd9QwXzR7vB2nLc?src=qr`,
        },
        size,
      ),
      size,
    );
  });

  it.each(['X', 'Coffee club', 'W'.repeat(255), 'ÄÖÜ Éçñ jpqy '.repeat(19)])(
    'shows the code, the whole title and no stamps in the design of a large code: %s',
    (title) => {
      for (const logo of title.length < 20 ? [null, LOGO] : [null]) {
        const drawing = drawPoster({ title, design: 'code', offers: [] }, size, { logo });
        expectTidy(drawing, size);
        expect(drawing.shapes.some(({ kind }) => kind === 'disc')).toBe(false);
        const text = texts(drawing)
          .map((line) => line.text)
          .join('')
          .replace(/\s/g, '');
        expect(text).toContain(title.replace(/\s/g, ''));
      }
    },
  );

  it.each(['en', 'de', 'fr', 'es', 'pl'])('fits the texts in %s', (locale) => {
    expectTidy(drawPoster({ locale }, size), size);
  });

  it.each([LOGO, { ...LOGO, height: 900 }])(
    'shows a logo of $width by $height beside nothing else',
    (logo) => {
      for (const title of [
        'Coffee club',
        'Donaudampfschifffahrtsgesellschaftskapitän '.repeat(2),
      ]) {
        const named = { title, offers: OFFERS, logoContainsName: false };
        expectTidy(drawPoster(named, size, { logo }), size);
        const drawing = drawPoster({ title, offers: OFFERS }, size, { logo });
        expectTidy(drawing, size);
        const [picture] = drawing.shapes.filter(({ kind }) => kind === 'picture');
        if (picture?.kind !== 'picture') throw new Error('there is no logo');
        expect(picture.width / picture.height).toBeCloseTo(logo.width / logo.height);
      }
    },
  );

  it('extends its ground into the bleed, with crop marks outside of it', () => {
    const drawing = drawPoster({}, size, { bleed: true });
    const { width, height } = PAPERS[size];
    const [ground] = drawing.shapes;
    expect(ground && getBox(ground)).toEqual({
      left: -BLEED,
      top: -BLEED,
      right: width + BLEED,
      bottom: height + BLEED,
    });
    const marks = drawing.shapes.slice(-8).map(getBox);
    const bleedBox = { left: -BLEED, top: -BLEED, right: width + BLEED, bottom: height + BLEED };
    const sheet = {
      left: -drawing.margin,
      top: -drawing.margin,
      right: width + drawing.margin,
      bottom: height + drawing.margin,
    };
    for (const mark of marks) expect(within(mark, sheet) && !overlap(mark, bleedBox)).toBe(true);
    expect(drawing.shapes.slice(1, -8)).toEqual(drawPoster({}, size).shapes.slice(1));
  });
});

describe('a table tent', () => {
  it('has the same on both halves, one of them turned', () => {
    const { shapes, height } = drawPoster({}, 'table_tent');
    const turned = shapes.find((shape) => shape.kind === 'turned');
    const lower = shapes.slice(-(turned?.kind === 'turned' ? turned.shapes.length : 0));
    expect(turned).toEqual({ kind: 'turned', shapes: lower });
    for (const shape of lower) expect(getBox(shape).top).toBeGreaterThan(height / 2);
  });
});

describe('the rewards of a poster', () => {
  it('take two lines where they need them', () => {
    const lines = texts(drawPoster({ offers: OFFERS }, 'a6')).map(({ text }) => text);
    expect(lines.filter((text) => text.includes('A whole cake')).length).toBeGreaterThan(1);
    expect(lines.some((text) => text.endsWith('for 10 stamps') && !text.startsWith('A'))).toBe(
      true,
    );
  });

  it.each(SIZES.filter((size) => size !== 'sticker'))(
    'are all shown below a larger title, and the code makes room for them, %s',
    (size) => {
      for (const logo of [null, LOGO]) {
        const title = 'The very long name of a coffee and cake loyalty card for early birds';
        const drawing = drawPoster({ title, offers: OFFERS }, size, { logo });
        expectTidy(drawing, size);
        const lines = texts(drawing);
        const all = lines.map(({ text }) => text).join(' ');
        for (const { reward, price } of OFFERS) expect(all).toContain(`${reward} ${price}`);
        const sizeOf = (part: string) => lines.find(({ text }) => text.includes(part))?.size ?? 0;
        expect(sizeOf('The very')).toBeGreaterThan(sizeOf('A whole cake'));
      }
    },
  );

  it.each(SIZES)('are shown as a whole or not at all, %s', (size) => {
    for (const [title, length] of [
      ['Coffee club', 255],
      ['W'.repeat(120), 120],
    ] as const) {
      const reward = 'Ein Frühstück für zwei mit allem '.repeat(9).slice(0, length).trim();
      const offers = [5, 10].map((stamps) => ({ reward, price: `für ${stamps} Stempel` }));
      const drawing = drawPoster({ title, offers, locale: 'de' }, size);
      expectTidy(drawing, size);
      expect(texts(drawing).filter(({ text }) => text.endsWith('…'))).toEqual([]);
    }
  });

  it.each(SIZES)('are left out before any text is smaller than seven points, %s', (size) => {
    for (const locale of ['en', 'de']) {
      for (const logo of [null, LOGO]) {
        const drawing = drawPoster({ title: 'W'.repeat(120), offers: OFFERS, locale }, size, {
          logo,
        });
        expectTidy(drawing, size);
        for (const { size: points } of texts(drawing)) expect(points).toBeGreaterThanOrEqual(6.99);
      }
    }
  });
});

describe('the stamps of a poster', () => {
  it.each(Array.from({ length: 21 }, (_, index) => index + 1))('are all drawn: %i', (count) => {
    const drawing = drawPoster({ stamps: { count, icon: 'star', rewards: [count] } });
    expectTidy(drawing, 'a4');
    expect(drawing.shapes.filter(({ kind }) => kind === 'disc')).toHaveLength(count);
  });
});

describe('the code of a poster', () => {
  const inMillimetres = (points: number) => (points / 72) * 25.4;

  it('has modules of more than three millimetres on A4, to be read from two metres', () => {
    const code = drawPoster().shapes.find(
      (shape) => shape.kind === 'path' && shape.path.startsWith('M4 4h7'),
    );
    expect(code?.kind === 'path' && inMillimetres(code.scale)).toBeGreaterThan(3);
  });

  it('is larger in the design that shows little else', () => {
    const width = (drawing: Drawing) => getCodeBox(drawing).right - getCodeBox(drawing).left;
    const usual = width(drawPoster());
    expect(width(drawPoster({ design: 'code', offers: [] }))).toBeGreaterThan(1.1 * usual);
  });

  it('is larger than two centimetres on every paper', () => {
    for (const size of SIZES) {
      for (const offers of [content.offers, OFFERS]) {
        const { left, right } = getCodeBox(drawPoster({ title: 'W'.repeat(120), offers }, size));
        expect(inMillimetres(right - left)).toBeGreaterThan(20);
      }
    }
  });
});

describe('the colours of a poster', () => {
  it.each([
    ['#FFFFFF', '#FFFFFF', '#FFFFFF'],
    ['#000000', '#000000', '#000000'],
    ['#777777', '#888888', '#7A7A7A'],
    ['#FFD400', '#FFFFFF', '#FFE600'],
    ['#B3002D', '#00B32D', '#B3002D'],
    ['#00FFFF', '#FF00FF', '#FFFF00'],
  ])('stay readable on %s, whatever the store chooses', (ground, text, stamps) => {
    const drawing = drawPoster({ colors: { ground, text, stamps } });
    const panel = getPanelBox(drawing);
    for (const shape of texts(drawing)) {
      const behind = within(getBox(shape), panel) ? '#FFFFFF' : ground;
      expect(computeContrast(shape.fill, behind)).toBeGreaterThanOrEqual(4.5);
    }
    drawing.shapes.forEach((shape, index) => {
      const below = drawing.shapes[index - 1];
      if (shape.kind !== 'path' || below?.kind !== 'disc') return;
      expect(computeContrast(shape.fill, below.fill)).toBeGreaterThanOrEqual(3);
    });
  });
});

describe('the texts of a poster', () => {
  it('leave out characters without a glyph in any font', () => {
    const { title, shapes } = drawPoster({ title: '🍣 Sushi 寿司 club', storeName: '寿司' });
    expect(title).toBe('Sushi club');
    expect(shapes.some((shape) => shape.kind === 'text' && /[🍣寿]/u.test(shape.text))).toBe(false);
  });

  it('include a default title when no character of the title is left', () => {
    for (const title of ['🍣', '寿司', '– …', '\u202E\u0000']) {
      expect(drawPoster({ title, locale: 'de' }).title).toBe('Stempelkarte');
    }
  });
});
