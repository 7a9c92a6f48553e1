/** Both are fonts of Inter; see `PosterFonts`. */
export type Weight = 'regular' | 'bold';

/** In points, with y downwards from the upper left corner of the paper as it is after cutting. */
export type Shape =
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
  /** Filled where it goes around; `scale` is points for each of its own units. */
  | { kind: 'path'; x: number; y: number; scale: number; path: string; fill: string }
  /** `x` is the left end, `y` the line that letters stand on. */
  | {
      kind: 'text';
      x: number;
      y: number;
      size: number;
      weight: Weight;
      text: string;
      fill: string;
    };

export type Drawing = {
  /** The paper as it is after cutting. */
  width: number;
  height: number;
  /** Around it on all sides: what is cut off, and the part of that which the drawing covers. */
  margin: number;
  bleed: number;
  title: string;
  author: string;
  /** BCP 47. */
  lang: string;
  createdAt: string;
  shapes: Shape[];
};
