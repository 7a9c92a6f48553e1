import { getTranslations } from '#translations/translations.js';
import { isStampIcon } from '#cards/card-appearance.js';
import { STAMP_ICON_PATHS } from '#card-images/stamp-icons.js';
import { computeContrast, pickReadableColor } from '#pages/colors.js';
import { findDarkModules } from '#web-card/qr-modules.js';
import type { Drawing, DrawnShape, Weight } from './drawing.js';
import { fitText, type Measure, type Room } from './fitting.js';
import { BLEED, MARKS, type Paper } from './paper.js';
import type { PosterContent } from './poster-content.js';

/** Increase it when the layout changes: it is part of a document's hash. */
export const LAYOUT_VERSION = 1;

/** Measures and filters letters for the layout. */
export type Lettering = {
  /** Measures a text in ems. */
  width: (text: string, weight: Weight) => number;
  /** Removes characters that no font can draw. */
  removeIllegible: (text: string, weight: Weight) => string;
};

/** The minimum contrast of shapes (WCAG 2.2, success criterion 1.4.11). */
const VISIBLE = 3;
const WHITE = '#FFFFFF';
const INK = '#111111';
/** The extent of Inter above and below the baseline, in ems. */
const ASCENT = 0.76;
const DESCENT = 0.24;

/** Lengths are in hundredths of the width of the A sheet that fits on the paper. */
const EDGE = 6;
const WIDE = 88;
const GAP = 4;
const CODE = 71;
const PANEL = { above: 3.6, below: 3.2, radius: 3.5, scan: 4.4, address: 2.6 };
const MAX_IN_ROW = 12;
/** The share of the height above the panel that the title may have before the rest shrinks. */
const TITLE_SHARE = 0.4;

/** An element of the column, with the space before it. */
type Block = { before: number; height: number; draw: (top: number) => DrawnShape[] };

export function layOutPoster(
  content: PosterContent,
  paper: Paper,
  { bleed }: { bleed: boolean },
  letters: Lettering,
): Drawing {
  return new PosterLayout(content, paper, letters).drawing(bleed);
}

class PosterLayout {
  private readonly unit: number;
  private readonly ink: string;
  private readonly t;
  private readonly widths: Record<Weight, Map<string, number>> = {
    regular: new Map(),
    bold: new Map(),
  };

  constructor(
    private readonly content: PosterContent,
    private readonly paper: Paper,
    private readonly letters: Lettering,
  ) {
    this.unit = Math.min(paper.width, paper.height / Math.SQRT2) / 100;
    this.ink = pickReadableColor(content.colors.ground, content.colors.text);
    this.t = getTranslations(content.lang).t.poster;
  }

  drawing(bleed: boolean): Drawing {
    const { paper, unit, content } = this;
    const over = bleed ? BLEED : 0;
    const panel = this.panel();
    const top = paper.height - EDGE * unit - panel.height;
    return {
      width: paper.width,
      height: paper.height,
      margin: bleed ? BLEED + MARKS : 0,
      bleed: over,
      title: this.title(),
      author: content.storeName,
      lang: content.lang,
      createdAt: content.createdAt,
      shapes: [
        {
          kind: 'rectangle',
          x: -over,
          y: -over,
          width: paper.width + 2 * over,
          height: paper.height + 2 * over,
          radius: 0,
          fill: content.colors.ground,
        },
        ...this.head(EDGE * unit, top - GAP * unit),
        ...panel.draw(top),
        ...(bleed ? cropMarks(paper) : []),
      ],
    };
  }

  private title(): string {
    return this.letters.removeIllegible(this.content.title, 'bold') || this.t.stampCard;
  }

  /** Lays out store name, title, stamps and rewards, centred vertically. */
  private head(from: number, to: number): DrawnShape[] {
    const room = (to - from) / this.unit;
    const sumHeights = (blocks: Block[]) =>
      blocks.reduce((sum, { before, height }) => sum + before + height, 0) / this.unit;
    const layOutTitle = (height: number) =>
      this.lines(this.title(), 'bold', {
        before: 1.2,
        width: WIDE,
        maxSize: 13,
        minSize: 1.8,
        maxLines: 6,
        leading: 1.2,
        height: height - 1.2,
      });
    const layOutRest = (scale: number) => {
      const above = this.storeName(scale);
      const below = [this.stamps(scale), ...this.offers(scale)];
      return { above, below, height: sumHeights([...above, ...below]) };
    };
    const availableHeight = room - sumHeights([layOutTitle(room * TITLE_SHARE)]);
    let scale = 1;
    while (layOutRest(scale).height > availableHeight) scale *= 0.95;
    const { above, below, height } = layOutRest(scale);
    const blocks = [...above, layOutTitle(room - height), ...below];
    let y = from + ((room - sumHeights(blocks)) / 2) * this.unit;
    return blocks.flatMap((block) => {
      const shapes = block.draw(y + block.before);
      y += block.before + block.height;
      return shapes;
    });
  }

  private storeName(scale: number): Block[] {
    const name = this.letters.removeIllegible(this.content.storeName, 'regular');
    if (name === '') return [];
    return [
      this.lines(name, 'regular', {
        before: 0,
        width: WIDE,
        maxSize: 4 * scale,
        minSize: 2.4 * scale,
        maxLines: 1,
        leading: 1.2,
        height: 5 * scale,
      }),
    ];
  }

  private offers(scale: number): Block[] {
    const { offers, aim } = this.content;
    const offerTexts = offers
      .map(({ reward, price }) => ({ reward: this.letters.removeIllegible(reward, 'bold'), price }))
      .filter(({ reward }) => reward !== '')
      .map(({ reward, price }) => `${reward} ${price}`);
    const texts = offerTexts.length > 0 ? offerTexts : [aim];
    const single = texts.length === 1;
    const room = {
      width: WIDE,
      minSize: 2.4 * scale,
      maxLines: single ? 2 : 1,
      leading: 1.2,
      height: (single ? 13 : 5) * scale,
    };
    const maxSize = (single ? 5.4 : 4) * scale;
    // All offers get the size of the longest.
    const sizes = texts.map(
      (text) => fitText(text, { ...room, maxSize }, this.measure('bold')).size,
    );
    return texts.map((text, index) =>
      this.lines(text, 'bold', {
        ...room,
        before: (index === 0 ? 2.6 : 0.4) * scale,
        maxSize: Math.min(...sizes),
      }),
    );
  }

  /** Lays out one stamp for each that the card needs, with a gift where a reward is due. */
  private stamps(scale: number): Block {
    const { count, icon, rewards } = this.content.stamps;
    const rows = Math.ceil(count / MAX_IN_ROW);
    const longest = Math.ceil(count / rows);
    const cell = Math.min(WIDE / longest, rows > 1 ? 6.6 : 8.4) * scale * this.unit;
    const draw = (top: number) =>
      Array.from({ length: count }, (_, index) => {
        const row = Math.floor(index / longest);
        const inRow = Math.min(longest, count - row * longest);
        const x = this.paper.width / 2 + ((index % longest) - (inRow - 1) / 2) * cell;
        const due = rewards.includes(index + 1);
        return this.stamp({ x, y: top + (row + 0.5) * cell }, cell, due ? 'gift' : icon, due);
      }).flat();
    return { before: 2.6 * scale * this.unit, height: rows * cell, draw };
  }

  private stamp(
    { x, y }: { x: number; y: number },
    cell: number,
    icon: string,
    due: boolean,
  ): DrawnShape[] {
    const { ground, stamps } = this.content.colors;
    const fill = due ? this.ink : stamps;
    const mark =
      computeContrast(fill, ground) >= VISIBLE ? ground : pickReadableColor(fill, this.ink);
    const radius = cell * 0.44;
    const size = radius * 1.24;
    return [
      // Outlines a stamp that has the colour of the ground.
      ...(computeContrast(fill, ground) < VISIBLE / 2
        ? [{ kind: 'disc', x, y, radius: radius * 1.04, fill: this.ink } as const]
        : []),
      { kind: 'disc', x, y, radius: radius * 0.97, fill },
      {
        kind: 'path',
        x: x - size / 2,
        y: y - size / 2,
        scale: size / 24,
        path: isStampIcon(icon) ? STAMP_ICON_PATHS[icon] : STAMP_ICON_PATHS.star,
        fill: mark,
      },
    ];
  }

  /** Lays out the QR code with its quiet zone, always on white, because scanners need it. */
  private panel(): Block {
    const { unit, paper, content } = this;
    const ink = pickReadableColor(WHITE, content.colors.ground);
    const { path, side } = findDarkModules(content.code, 'Q');
    const width = WIDE * unit;
    const inner = { width: WIDE - 8, leading: 1.25, before: 0, minSize: 1.7, maxLines: 3 };
    const line = (text: string, weight: Weight, maxSize: number, color: string) =>
      this.lines(text, weight, { ...inner, maxSize, height: maxSize * 1.3, color });
    const scan = line(this.t.scan, 'bold', PANEL.scan, ink);
    const address = line(content.address, 'regular', PANEL.address, INK);
    const code = CODE * unit;
    const inside = PANEL.above * unit + scan.height;
    const left = (paper.width - width) / 2;
    const height = inside + code + address.height + PANEL.below * unit;
    const draw = (top: number): DrawnShape[] => [
      ...this.frame({ x: left, y: top, width, height }),
      ...scan.draw(top + PANEL.above * unit),
      {
        kind: 'path',
        x: (paper.width - code) / 2,
        y: top + inside,
        scale: code / side,
        path,
        fill: INK,
      },
      ...address.draw(top + inside + code),
    ];
    return { before: 0, height, draw };
  }

  private frame(box: { x: number; y: number; width: number; height: number }): DrawnShape[] {
    const radius = PANEL.radius * this.unit;
    const panel = { kind: 'rectangle', ...box, radius, fill: WHITE } as const;
    if (computeContrast(this.content.colors.ground, WHITE) >= 1.25) return [panel];
    const line = 0.4 * this.unit;
    return [
      {
        kind: 'rectangle',
        x: box.x - line,
        y: box.y - line,
        width: box.width + 2 * line,
        height: box.height + 2 * line,
        radius: radius + line,
        fill: this.ink,
      },
      panel,
    ];
  }

  /** Caches widths, because the same words are measured in many sizes. */
  private measure(weight: Weight): Measure {
    const widths = this.widths[weight];
    return (text) => {
      const width = widths.get(text) ?? this.letters.width(text, weight);
      widths.set(text, width);
      return width;
    };
  }

  /** Lays out centred lines of a text. The lengths of the box are in units. */
  private lines(
    text: string,
    weight: Weight,
    { before, color = this.ink, ...room }: Room & { before: number; color?: string },
  ): Block {
    const { unit, letters, paper } = this;
    const { size, lines } = fitText(text, room, this.measure(weight));
    const step = size * room.leading * unit;
    const points = size * unit;
    // Centres the letters vertically within their line.
    const drop = (step - (ASCENT + DESCENT) * points) / 2 + ASCENT * points;
    return {
      before: before * unit,
      height: lines.length * step,
      draw: (top) =>
        lines.map((line, index) => ({
          kind: 'text',
          x: (paper.width - letters.width(line, weight) * points) / 2,
          y: top + index * step + drop,
          size: points,
          weight,
          text: line,
          fill: color,
        })),
    };
  }
}

/** Draws the crop marks, outside of the bleed. */
function cropMarks({ width, height }: Paper): DrawnShape[] {
  const thick = 0.3;
  const long = MARKS - 2;
  return [-BLEED - long - 1, 0].flatMap((away) => {
    const across = away < 0 ? away : width + BLEED + 1;
    const down = away < 0 ? away : height + BLEED + 1;
    return [
      ...[0, height].map((y) => ({ x: across, y: y - thick / 2, width: long, height: thick })),
      ...[0, width].map((x) => ({ x: x - thick / 2, y: down, width: thick, height: long })),
    ].map((box) => ({ kind: 'rectangle', ...box, radius: 0, fill: '#000000' }) as const);
  });
}
