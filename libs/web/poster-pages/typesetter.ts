import type { Weight } from '#loyalty/posters/shaped-font.js';
import { markLines } from '#loyalty/posters/text-direction.js';
import type { DrawnShape } from './drawing.js';
import { fitText, type Measure, type Room } from './fitting.js';

/** The extent of Inter above and below the baseline, in ems. */
const ASCENT = 0.76;
const DESCENT = 0.24;
/** In points: nobody reads smaller print from a wall (POSTER-45). */
const MIN_POINTS = 7;

/** Measures and filters letters for the layout. */
export type Lettering = {
  /** Measures a text in ems. */
  width: (text: string, weight: Weight) => number;
  /** Removes characters that no font can draw. */
  removeIllegible: (text: string, weight: Weight) => string;
};

/** Where lines stand. @property centre in points @property width in units */
export type Column = { centre: number; width: number };

/** An element of a column, with the space before it. */
export type Block = { before: number; height: number; draw: (top: number) => DrawnShape[] };

/** @property size of the letters, in points @property isWhole false if the end of the text is missing */
export type TextBlock = Block & { size: number; isWhole: boolean };

/** Sets lines of text in units of the layout. */
export class Typesetter {
  /** The smallest size of letters, in units. */
  readonly minSize: number;
  private readonly widths: Record<Weight, Map<string, number>> = {
    regular: new Map(),
    bold: new Map(),
  };

  /** @param unit of all lengths, in points */
  constructor(
    private readonly letters: Lettering,
    private readonly unit: number,
  ) {
    this.minSize = MIN_POINTS / unit;
  }

  /** Fits a text into a box, in no smaller letters than can be read. The lengths of the box are in units. */
  fit(text: string, weight: Weight, room: Room): ReturnType<typeof fitText> {
    const minSize = Math.max(room.minSize, this.minSize);
    return fitText(
      text,
      {
        ...room,
        minSize,
        maxSize: Math.max(room.maxSize, minSize),
        // Where only the smallest size is left, it needs its line.
        height: Math.max(room.height, minSize * room.leading),
      },
      this.measure(weight),
    );
  }

  /** Lays out centred lines of a text. */
  layOutLines(
    text: string,
    weight: Weight,
    { before, color, column, ...room }: Room & { before: number; color: string; column: Column },
  ): TextBlock {
    const { unit, letters } = this;
    const { size, lines } = this.fit(text, weight, room);
    const step = size * room.leading * unit;
    const points = size * unit;
    // Centres the letters vertically within their line.
    const drop = (step - (ASCENT + DESCENT) * points) / 2 + ASCENT * points;
    return {
      before: before * unit,
      height: lines.length * step,
      size: points,
      isWhole: !lines.at(-1)?.endsWith('…') || text.trimEnd().endsWith('…'),
      draw: (top) =>
        markLines(text, lines).map((line, index) => ({
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

  /** Caches widths, because the same words are measured in many sizes. */
  private measure(weight: Weight): Measure {
    const widths = this.widths[weight];
    return (text) => {
      const width = widths.get(text) ?? this.letters.width(text, weight);
      widths.set(text, width);
      return width;
    };
  }
}
