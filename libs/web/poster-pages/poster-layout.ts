import { getCustomerTranslations } from '#translations/translations.js';
import { pickReadableColor } from '#web/pages/colors.js';
import type { Drawing, DrawnShape } from './drawing.js';
import { BLEED, MARKS, type Arrangement, type Paper } from './paper.js';
import type { PosterContent } from './poster-content.js';
import { layOutLogo, type PosterLogo } from './poster-logo.js';
import { layOutOffers } from './poster-offers.js';
import { layOutPanel, PANEL_WIDTH } from './poster-panel.js';
import { drawStamp } from './poster-stamp.js';
import { drawCropMarks, drawFoldMarks, moveDown } from './sheet-marks.js';
import {
  Typesetter,
  type Block,
  type Column,
  type Lettering,
  type TextBlock,
} from './typesetter.js';

/** Increase it when the layout changes: it is part of a document's hash. */
export const LAYOUT_VERSION = 4;

/** Lengths are in hundredths of the width of the A sheet that fits on the paper; see `chooseUnit`. */
const EDGE = 6;
const WIDE = PANEL_WIDTH;
const GAP = 4;
/** The side of the code. It makes room for the texts where they need it: on A4, the smallest is read from a metre. */
const CODE_SIZES: Record<Arrangement, readonly number[]> = {
  upright: [71, 65, 59, 53],
  folded: [71],
  // On a sticker the title needs some room as well.
  small: [40],
};
/** Of the design that shows little else. */
const LARGE_CODE_SIZE = 80;
/** Of its title, or else the code makes room. */
const MIN_TITLE_SIZE = 4;
const MAX_IN_ROW = 12;
/** The shares of the height above the panel that the title may have: it shrinks before a reward is left out. */
const TITLE_SHARES = [0.4, 0.28, 0.18];
/** The share of a title that needs so much in the smallest size. */
const MAX_TITLE_SHARE = 0.65;
/** Of a title: long ones take more where letters cannot shrink further. */
const MAX_LINES = { usual: 6, crowded: 10 };
/** Half an A4 sheet has room for a code of this share of its height, and a column beside it. */
const BESIDE_HEIGHT = 118;
/** The rest shrinks so far before a reward is left out. */
const MIN_SCALE = 0.7;
const SCALE_STEP = 0.95;
/** A title is larger than the rewards by this factor, or else the code makes room for it. */
const TITLE_FACTOR = 1.2;

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
    lang: content.locale,
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

/** @property offers how many rewards are shown @property offerSize of their letters, in points */
type Rest = { above: Block[]; below: Block[]; offers: number; offerSize: number };

/** @property isComfortable whether all rewards are shown, below a title that is larger than they are */
type Head = { blocks: Block[]; isComfortable: boolean };

class PosterLayout {
  private readonly unit: number;
  private readonly typesetter: Typesetter;
  readonly ink: string;
  private readonly t;
  private readonly panelColumn: Column;
  private readonly headColumn: Column;
  /** Whether neither stamps nor rewards are shown. */
  private readonly isPlain: boolean;
  private readonly rests = new Map<string, Rest | undefined>();

  constructor(
    private readonly content: PosterContent,
    private readonly paper: Face,
    private readonly arrangement: Arrangement,
    private readonly letters: Lettering,
    private readonly logo: PosterLogo | null,
  ) {
    this.unit = chooseUnit(paper, arrangement);
    this.isPlain = arrangement === 'small' || content.design === 'code';
    this.typesetter = new Typesetter(letters, this.unit);
    this.ink = pickReadableColor(content.colors.ground, content.colors.text);
    this.t = getCustomerTranslations(content).t.poster;
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
    const isLarge = this.content.design === 'code' && this.arrangement === 'upright';
    const sizes = [...(isLarge ? [LARGE_CODE_SIZE] : []), ...CODE_SIZES[this.arrangement]];
    const faces = sizes.map((size) => () => this.layOutFace(size));
    let face = faces[0]?.();
    for (const layOut of faces.slice(1)) {
      if (face?.head.isComfortable) break;
      face = layOut();
    }
    return face?.shapes ?? [];
  }

  title(): string {
    return this.letters.removeIllegible(this.content.title, 'bold') || this.t.stampCard;
  }

  /** Lays out one face with a code of this size. */
  private layOutFace(codeSize: number): { head: Head; shapes: DrawnShape[] } {
    const { paper, unit, content, typesetter } = this;
    const panel = layOutPanel(
      {
        code: content.code,
        address: content.address,
        scan: this.t.scan,
        ground: content.colors.ground,
        ink: this.ink,
        unit,
        typesetter,
        column: this.panelColumn,
      },
      codeSize,
    );
    const from = EDGE * unit;
    const isBeside = this.arrangement === 'folded';
    const bottom = paper.height - EDGE * unit;
    const top = isBeside ? (paper.height - panel.height) / 2 : bottom - panel.height;
    const to = isBeside ? bottom : top - GAP * unit;
    const head = this.head((to - from) / unit);
    let y = from + (to - from - this.sumHeights(head.blocks) * unit) / 2;
    const shapes = head.blocks.flatMap((block) => {
      const drawn = block.draw(y + block.before);
      y += block.before + block.height;
      return drawn;
    });
    return { head, shapes: [...shapes, ...panel.draw(top)] };
  }

  /** Lays out logo or store name, title, stamps and rewards in this height, in units. */
  private head(room: number): Head {
    const max = room * MAX_TITLE_SHARE;
    const needed = Math.min(max, this.sumHeights([this.layOutTitle(max, 0)]));
    const available = TITLE_SHARES.map(
      (share) => room - this.sumHeights([this.layOutTitle(Math.max(room * share, needed))]),
    );
    const { above, below, offers, offerSize } = this.chooseRest(available);
    const title = this.layOutTitle(room - this.sumHeights([...above, ...below]));
    return {
      blocks: [...above, title, ...below],
      isComfortable: offers >= this.content.offers.length && title.size >= offerSize * TITLE_FACTOR,
    };
  }

  private layOutTitle(height: number, maxSize = 13): TextBlock {
    return this.typesetter.layOutLines(this.title(), 'bold', {
      before: 1.2,
      width: this.headColumn.width,
      maxSize: Math.min(maxSize, (height - 1.2) / 1.2),
      minSize: 1.8,
      maxLines: this.typesetter.minSize > 1.8 ? MAX_LINES.crowded : MAX_LINES.usual,
      leading: 1.2,
      height: height - 1.2,
      color: this.ink,
      column: this.headColumn,
    });
  }

  /**
   * Chooses what stands around the title: as many rewards as fit in a readable size, else fewer, else none.
   * @param available the height, for each size of the title
   */
  private chooseRest(available: number[]): Rest {
    const maxOffers = this.isPlain ? 0 : Math.max(1, this.content.offers.length);
    for (let offers = maxOffers; offers >= 0; offers--) {
      for (const height of available) {
        for (let scale = 1; scale >= MIN_SCALE; scale *= SCALE_STEP) {
          const rest = this.findRest(scale, offers);
          if (rest && this.sumHeights([...rest.above, ...rest.below]) <= height) return rest;
        }
      }
    }
    if (this.isPlain) return { above: [], below: [], offers: 0, offerSize: 0 };
    let scale = MIN_SCALE;
    while (this.sumHeights([this.stamps(scale)]) > Math.max(...available)) scale *= SCALE_STEP;
    return { above: [], below: [this.stamps(scale)], offers: 0, offerSize: 0 };
  }

  /** Caches what is the same for each size of the code and of the title. */
  private findRest(scale: number, offers: number): Rest | undefined {
    const key = `${scale} ${offers}`;
    if (!this.rests.has(key)) this.rests.set(key, this.layOutRest(scale, offers));
    return this.rests.get(key);
  }

  /** @returns undefined if a reward does not fit as a whole */
  private layOutRest(scale: number, offers: number): Rest | undefined {
    const { content, arrangement, letters, typesetter, headColumn: column, ink: color } = this;
    if (this.isPlain) {
      // A sticker has no room for more than its logo and a title.
      const isNamed = this.logo !== null || arrangement !== 'small';
      const offerSize = arrangement === 'small' ? 0 : MIN_TITLE_SIZE / TITLE_FACTOR;
      return { above: isNamed ? this.storeName(scale) : [], below: [], offers: 0, offerSize };
    }
    const input = { content, arrangement, letters, typesetter, column, color };
    const blocks = layOutOffers(input, scale, offers);
    if (!blocks) return undefined;
    const offerSize = blocks[0]?.size ?? 0;
    const below = [this.stamps(scale), ...blocks];
    return { above: this.storeName(scale), below, offers, offerSize };
  }

  private sumHeights(blocks: Block[]): number {
    return blocks.reduce((sum, { before, height }) => sum + before + height, 0) / this.unit;
  }

  /** Lays out the logo, and the name of the store unless the logo has it. */
  private storeName(scale: number): Block[] {
    const { unit, headColumn: column } = this;
    const logo = this.logo ? [layOutLogo(this.logo, { scale, unit, column })] : [];
    if (this.logo && this.content.logoContainsName) return logo;
    const name = this.letters.removeIllegible(this.content.storeName, 'regular');
    if (name === '') return logo;
    return [
      ...logo,
      this.typesetter.layOutLines(name, 'regular', {
        before: this.logo ? 1 * scale : 0,
        width: column.width,
        maxSize: 4 * scale,
        minSize: 2.4 * scale,
        maxLines: 2,
        leading: 1.2,
        height: 9.6 * scale,
        color: this.ink,
        column,
      }),
    ];
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
}
