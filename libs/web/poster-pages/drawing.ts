import type { Weight } from '#loyalty/posters/shaped-font.js';

/** A shape in points, with y downwards from the upper left corner of the trimmed paper. */
export type DrawnShape =
  | {
      kind: 'rectangle';
      x: number;
      y: number;
      width: number;
      height: number;
      radius: number;
      fill: string;
    }
  | { kind: 'disc'; x: number; y: number; radius: number; fill: string }
  /** A filled path; `scale` is the number of points for each of its units. */
  | { kind: 'path'; x: number; y: number; scale: number; path: string; fill: string }
  /** `png` in its own proportions. */
  | { kind: 'picture'; x: number; y: number; width: number; height: number; png: Buffer }
  /** `x` is the left end, `y` the baseline. */
  | {
      kind: 'text';
      x: number;
      y: number;
      size: number;
      weight: Weight;
      text: string;
      fill: string;
    }
  /** Shapes that stand on their head: turned by 180 degrees around the centre of the paper. */
  | { kind: 'turned'; shapes: DrawnShape[] };

export type Drawing = {
  /** The trimmed size of the paper. */
  width: number;
  height: number;
  /** The margin that is cut off on all sides, and the part of it that the drawing covers. */
  margin: number;
  bleed: number;
  title: string;
  author: string;
  /** BCP 47. */
  lang: string;
  createdAt: string;
  shapes: DrawnShape[];
};
