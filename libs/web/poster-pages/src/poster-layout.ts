import { computeContrast } from '#kernel/contrast.js';
import { getTranslations } from '#translations/translations.js';
import { pickReadableColor } from '#pages/colors.js';
import { findDarkModules } from '#web-card/qr-modules.js';
import type { Drawing, DrawnShape, Weight } from './drawing.js';
import { layOutLogo, type PosterLogo } from './poster-logo.js';
import { fitText, type Measure, type Room } from './fitting.js';
import { BLEED, MARKS, type Arrangement, type Paper } from './paper.js';
import type { PosterContent } from './poster-content.js';
import { drawStamp } from './poster-stamp.js';
import { drawCropMarks, drawFoldMarks, moveDown } from './sheet-marks.js';

/** Increase it when the layout changes: it is part of a document's hash. */
export const LAYOUT_VERSION = 2;

/** Measures and filters letters for the layout. */
export type Lettering = {
  /** Measures a text in ems. */
  width: (text: string, weight: Weight) => number;
  /** Removes characters that no font can draw. */
  removeIllegible: (text: string, weight: Weight) => string;
};

const WHITE = '#FFFFFF';
const INK = '#111111';
/** The extent of Inter above and below the baseline, in ems. */
const ASCENT = 0.76;
const DESCENT = 0.24;

/** Lengths are in hundredths of the width of the A sheet that fits on the paper; see `chooseUnit`. */
const EDGE = 6;
const WIDE = 88;
const GAP = 4;
const CODE = 71;
/** On a sticker the title needs some room as well. */
const SMALL_CODE = 40;
const PANEL = { above: 3.6, below: 3.2, radius: 3.5, scan: 4.4, address: 2.6 };
const MAX_IN_ROW = 12;
/** The shares of the height above the panel that the title may have: it shrinks before a reward is left out. */
const TITLE_SHARES = [0.4, 0.28, 0.18];
/** The share of a title that needs so much in the smallest size. */
const MAX_TITLE_SHARE = 0.65;
/** Of a title: long ones take more where letters cannot shrink further. */
const MAX_LINES = { usual: 6, crowded: 10 };
/** Half an A4 sheet has room for a code of this share of its height, and a column beside it. */
const BESIDE_HEIGHT = 118;
/** In points: nobody reads smaller print from a wall (POSTER-45). */
const MIN_POINTS = 7;
/** The rest shrinks so far before a reward is left out. */
const MIN_SCALE = 0.7;
const SCALE_STEP = 0.95;

/** Where lines stand. @property centre in points @property width in units */
type Column = { centre: number; width: number };

/** An element of the column, with the space before it. */
type Block = { before: number; height: number; draw: (top: number) => DrawnShape[] };

export function layOutPoster(
  content: PosterContent,
  paper: Paper,
  { bleed }: { bleed: boolean },
  letters: Lettering,
  logo: PosterLogo | null = null,
): Drawing {
  const over = bleed ? BLEED : 0;
  const { width, height, arrangement } = paper;
  const isFolded = arrangement === 'folded';
  const face = { width, height: isFolded ? height / 2 : height };
  const layout = new PosterLayout(content, face, arrangement, letters, logo);
  const shapes = layout.shapes();
  const ground: DrawnShape = {
    kind: 'rectangle',
    x: -over,
    y: -over,
    width: width + 2 * over,
    height: height + 2 * over,
    radius: 0,
    fill: content.colors.ground,
  };
  // The lower half faces one side of the table, the upper half the other.
  const lower = shapes.map((shape) => moveDown(shape, height / 2));
  return {
    width,
    height,
    margin: bleed ? BLEED + MARKS : 0,
    bleed: over,
    title: layout.title(),
    author: content.storeName,
    lang: content.lang,
    createdAt: content.createdAt,
    shapes: [
      ground,
      ...(isFolded
        ? [
            { kind: 'turned' as const, shapes: lower },
            ...drawFoldMarks(paper, layout.ink),
            ...lower,
          ]
        : shapes),
      ...(bleed ? drawCropMarks(paper) : []),
    ],
  };
}

/** Chooses the unit of all lengths, in points. */
function chooseUnit({ width, height }: Face, arrangement: Arrangement): number {
  if (arrangement === 'folded') return height / BESIDE_HEIGHT;
  if (arrangement === 'small') return width / 100;
  return Math.min(width, height / Math.SQRT2) / 100;
}

type Face = { width: number; height: number };

class PosterLayout {
  private readonly unit: number;
  /** The smallest size of letters, in units. */
  private readonly minSize: number;
  readonly ink: string;
  private readonly t;
  private readonly widths: Record<Weight, Map<string, number>> = {
    regular: new Map(),
    bold: new Map(),
  };
  private readonly panelColumn: Column;
  private readonly headColumn: Column;

  constructor(
    private readonly content: PosterContent,
    private readonly paper: Face,
    private readonly arrangement: Arrangement,
    private readonly letters: Lettering,
    private readonly logo: PosterLogo | null,
  ) {
    this.unit = chooseUnit(paper, arrangement);
    this.minSize = MIN_POINTS / this.unit;
    this.ink = pickReadableColor(content.colors.ground, content.colors.text);
    this.t = getTranslations(content.lang).t.poster;
    const wide = WIDE * this.unit;
    const edge = EDGE * this.unit;
    if (arrangement === 'folded') {
      const left = paper.width - edge - wide;
      const width = left - edge - GAP * this.unit;
      this.panelColumn = { centre: left + wide / 2, width: WIDE };
      this.headColumn = { centre: edge + width / 2, width: width / this.unit };
    } else {
      this.panelColumn = this.headColumn = { centre: paper.width / 2, width: WIDE };
    }
  }

  /** Draws one face: all but its ground. */
  shapes(): DrawnShape[] {
    const { paper, unit } = this;
    const panel = this.panel();
    if (this.arrangement === 'folded') {
      return [
        ...this.head(EDGE * unit, paper.height - EDGE * unit),
        ...panel.draw((paper.height - panel.height) / 2),
      ];
    }
    const top = paper.height - EDGE * unit - panel.height;
    return [...this.head(EDGE * unit, top - GAP * unit), ...panel.draw(top)];
  }

  title(): string {
    return this.letters.removeIllegible(this.content.title, 'bold') || this.t.stampCard;
  }

  /** Lays out store name, title, stamps and rewards, centred vertically. */
  private head(from: number, to: number): DrawnShape[] {
    const room = (to - from) / this.unit;
    const layOutTitle = (height: number, maxSize = 13) =>
      this.lines(this.title(), 'bold', {
        before: 1.2,
        width: this.headColumn.width,
        maxSize: Math.min(maxSize, (height - 1.2) / 1.2),
        minSize: 1.8,
        maxLines: this.minSize > 1.8 ? MAX_LINES.crowded : MAX_LINES.usual,
        leading: 1.2,
        height: height - 1.2,
      });
    const max = room * MAX_TITLE_SHARE;
    const needed = Math.min(max, this.sumHeights([layOutTitle(max, 0)]));
    const available = TITLE_SHARES.map(
      (share) => room - this.sumHeights([layOutTitle(Math.max(room * share, needed))]),
    );
    const { above, below } = this.chooseRest(available);
    const blocks = [...above, layOutTitle(room - this.sumHeights([...above, ...below])), ...below];
    let y = from + ((room - this.sumHeights(blocks)) / 2) * this.unit;
    return blocks.flatMap((block) => {
      const shapes = block.draw(y + block.before);
      y += block.before + block.height;
      return shapes;
    });
  }

  /**
   * Chooses what stands around the title: as many rewards as fit in a readable size, else fewer, else none.
   * @param available the height, for each size of the title
   */
  private chooseRest(available: number[]): { above: Block[]; below: Block[] } {
    if (this.arrangement === 'small') return { above: [], below: [] };
    const layOut = (scale: number, rewards: number) => ({
      above: this.storeName(scale),
      below: [this.stamps(scale), ...this.offers(scale, rewards)],
    });
    for (let rewards = Math.max(1, this.content.offers.length); rewards >= 0; rewards--) {
      for (const height of available) {
        for (let scale = 1; scale >= MIN_SCALE; scale *= SCALE_STEP) {
          const rest = layOut(scale, rewards);
          if (this.sumHeights([...rest.above, ...rest.below]) <= height) return rest;
        }
      }
    }
    let scale = MIN_SCALE;
    while (this.sumHeights([this.stamps(scale)]) > Math.max(...available)) scale *= SCALE_STEP;
    return { above: [], below: [this.stamps(scale)] };
  }

  private sumHeights(blocks: Block[]): number {
    return blocks.reduce((sum, { before, height }) => sum + before + height, 0) / this.unit;
  }

  /** Lays out the logo, which has the name of the store in it, or else the name. */
  private storeName(scale: number): Block[] {
    if (this.logo) {
      return [layOutLogo(this.logo, { scale, unit: this.unit, paperWidth: this.paper.width })];
    }
    const name = this.letters.removeIllegible(this.content.storeName, 'regular');
    if (name === '') return [];
    return [
      this.lines(name, 'regular', {
        before: 0,
        width: this.headColumn.width,
        maxSize: 4 * scale,
        minSize: 2.4 * scale,
        maxLines: 1,
        leading: 1.2,
        height: 5 * scale,
      }),
    ];
  }

  /** Lays out the rewards, in two lines if they need them. @param count without the ones in the middle */
  private offers(scale: number, count: number): Block[] {
    const { offers, aim } = this.content;
    const selected = [...offers.slice(0, Math.max(0, count - 1)), ...offers.slice(-1)];
    if (count === 0) return [];
    const offerTexts = (count < offers.length ? selected : offers)
      .map(({ reward, price }) => ({ reward: this.letters.removeIllegible(reward, 'bold'), price }))
      .filter(({ reward }) => reward !== '')
      .map(({ reward, price }) => `${reward} ${price}`);
    const texts = offerTexts.length > 0 ? offerTexts : [aim];
    const single = texts.length === 1;
    const maxLines = this.arrangement === 'folded' ? 3 : 2;
    const maxSize = Math.max((single ? 5.4 : 4) * scale, this.minSize);
    const room = {
      width: this.headColumn.width,
      minSize: Math.max(2.4 * scale, this.minSize),
      maxLines,
      leading: 1.2,
      height: maxLines * maxSize * 1.2 + 0.1,
    };
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
    const { colors } = this.content;
    const { count, icon, rewards } = this.content.stamps;
    const rows = Math.ceil(count / (this.arrangement === 'folded' ? MAX_IN_ROW / 2 : MAX_IN_ROW));
    const longest = Math.ceil(count / rows);
    const cell =
      Math.min(this.headColumn.width / longest, rows > 1 ? 6.6 : 8.4) * scale * this.unit;
    const draw = (top: number) =>
      Array.from({ length: count }, (_, index) => {
        const row = Math.floor(index / longest);
        const inRow = Math.min(longest, count - row * longest);
        const x = this.headColumn.centre + ((index % longest) - (inRow - 1) / 2) * cell;
        const due = rewards.includes(index + 1);
        const centre = { x, y: top + (row + 0.5) * cell };
        const look = { ground: colors.ground, fill: due ? this.ink : colors.stamps, ink: this.ink };
        return drawStamp(centre, cell, due ? 'gift' : icon, look);
      }).flat();
    return { before: 2.6 * scale * this.unit, height: rows * cell, draw };
  }

  /** Lays out the QR code with its quiet zone, always on white, because scanners need it. */
  private panel(): Block {
    const { unit, content, panelColumn: column } = this;
    const ink = pickReadableColor(WHITE, content.colors.ground);
    const { path, side } = findDarkModules(content.code, 'Q');
    const width = WIDE * unit;
    const inner = { width: WIDE - 8, leading: 1.25, before: 0, minSize: 1.7, maxLines: 3 };
    const line = (text: string, weight: Weight, maxSize: number, color: string) =>
      this.lines(text, weight, { ...inner, maxSize, height: maxSize * 1.3, color, column });
    const scan = line(this.t.scan, 'bold', PANEL.scan, ink);
    const address = line(content.address, 'regular', PANEL.address, INK);
    const code = (this.arrangement === 'small' ? SMALL_CODE : CODE) * unit;
    const inside = PANEL.above * unit + scan.height;
    const left = column.centre - width / 2;
    const height = inside + code + address.height + PANEL.below * unit;
    const draw = (top: number): DrawnShape[] => [
      ...this.frame({ x: left, y: top, width, height }),
      ...scan.draw(top + PANEL.above * unit),
      {
        kind: 'path',
        x: column.centre - code / 2,
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
    {
      before,
      color = this.ink,
      column = this.headColumn,
      ...box
    }: Room & { before: number; color?: string; column?: Column },
  ): Block {
    const { unit, letters } = this;
    const minSize = Math.max(box.minSize, this.minSize);
    const room = {
      ...box,
      minSize,
      maxSize: Math.max(box.maxSize, minSize),
      // Where only the smallest size is left, it needs its line.
      height: Math.max(box.height, minSize * box.leading),
    };
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
          x: column.centre - (letters.width(line, weight) * points) / 2,
          y: top + index * step + drop,
          size: points,
          weight,
          text: line,
          fill: color,
        })),
    };
  }
}
