import type { ShapedFont, Weight } from './shaped-font.js';
import { mirrorText, splitByDirection } from './text-direction.js';

/**
 * A font of a document.
 * @property file of a font that a PDF has in it; null: its letters are drawn as paths
 */
export type Face = { name: string; font: ShapedFont; file: Buffer | null };
/** A part of a text in one font. @property width in ems */
export type Run = { face: Face; text: string; width: number; isRightToLeft: boolean };

const graphemes = new Intl.Segmenter(undefined, { granularity: 'grapheme' });
const CONTROL = /(?![\t\r\n])\p{Cc}/gu;
/** Without a letter, number or sign, nothing can be read. */
const READABLE = /[\p{L}\p{N}\p{S}]/u;
const SHAPELESS = /\p{Default_Ignorable_Code_Point}/u;
/** What the first font draws that has it: spaces are too wide in some. */
const LETTER_OR_SPACE = /[\p{L}\p{N}\p{Zs}]/u;

/**
 * Replaces characters that no font has by the simple form of the same character where there is one, such as 𝓒 by C.
 * @param canDraw tells whether one font has all of a grapheme
 */
export function simplifyText(
  text: string,
  canDraw: (grapheme: string) => boolean,
): { text: string; illegible: string[] } {
  const illegible: string[] = [];
  const parts = splitGraphemes(text.normalize('NFC').replace(CONTROL, '')).map((grapheme) => {
    if (/^\s+$/.test(grapheme)) return grapheme === '\u00A0' ? grapheme : ' ';
    if (listCharacters(grapheme).length === 0 || canDraw(grapheme)) return grapheme;
    const simple = grapheme.normalize('NFKC');
    if (simple !== grapheme && splitGraphemes(simple).every(canDraw)) return simple;
    illegible.push(grapheme);
    return '';
  });
  const legible = parts.join('').replace(/ +/g, ' ');
  return {
    text: READABLE.test(legible) ? legible.trim() : '',
    illegible: [...new Set(illegible)],
  };
}

export function splitGraphemes(text: string): string[] {
  return [...graphemes.segment(text)].map(({ segment }) => segment);
}

/** Measures and outlines the letters of a document, in the fonts that it needs. */
export class Letters {
  /** @param faces the first that has a character draws it */
  constructor(private readonly faces: Record<Weight, readonly Face[]>) {}

  /** Measures a text in ems. */
  width(text: string, weight: Weight): number {
    return this.runs(text, weight).reduce((sum, { width }) => sum + width, 0);
  }

  /** Removes characters that no font can draw; empty if nothing is left. */
  removeIllegible(text: string, weight: Weight): string {
    return simplifyText(text, (grapheme) => this.findFace(grapheme, weight) !== undefined).text;
  }

  /** Splits a line into parts in the order in which they are drawn, from the left. */
  runs(line: string, weight: Weight): Run[] {
    return splitByDirection(line).flatMap(({ text, isRightToLeft }) => {
      const parts = this.splitByFace(text, weight);
      return (isRightToLeft ? parts.toReversed() : parts).map(({ face, text }) =>
        measureRun(face, text, isRightToLeft, weight),
      );
    });
  }

  /** Converts a text to an SVG path, from its left end on the baseline. */
  outline(text: string, weight: Weight, at: { x: number; y: number; size: number }): string {
    let { x } = at;
    return this.runs(text, weight)
      .map((run) => {
        const path = outlineRun(run, weight, { ...at, x });
        x += run.width * at.size;
        return path;
      })
      .join('');
  }

  /** Splits a text where it needs another font. Signs stay with the letters before them. */
  private splitByFace(text: string, weight: Weight): { face: Face; text: string }[] {
    // Once for all faces: a text of many scripts has hundreds of them.
    const parts = splitGraphemes(text).map((grapheme) => ({
      grapheme,
      characters: listCharacters(grapheme),
    }));
    const complete = this.faces[weight].find((face) =>
      parts.every(({ characters }) => canDraw(face, characters)),
    );
    if (complete) return [{ face: complete, text }];
    const runs: { face: Face; text: string }[] = [];
    for (const { grapheme, characters } of parts) {
      const last = runs.at(-1);
      const canStay =
        last !== undefined && !LETTER_OR_SPACE.test(grapheme) && canDraw(last.face, characters);
      const face = canStay ? last.face : this.getFace(grapheme, weight);
      if (last !== undefined && last.face === face) last.text += grapheme;
      else runs.push({ face, text: grapheme });
    }
    return runs;
  }

  private findFace(grapheme: string, weight: Weight): Face | undefined {
    const characters = listCharacters(grapheme);
    return this.faces[weight].find((face) => canDraw(face, characters));
  }

  private getFace(grapheme: string, weight: Weight): Face {
    const face = this.findFace(grapheme, weight) ?? this.faces[weight][0];
    if (!face) throw new Error(`there is no font for ${weight} letters`);
    return face;
  }
}

/** Lists the characters of a grapheme that have a shape. */
export function listCharacters(grapheme: string): number[] {
  return [...grapheme]
    .filter((character) => !SHAPELESS.test(character))
    .map((character) => character.codePointAt(0) ?? 0);
}

function canDraw({ font }: Face, characters: readonly number[]): boolean {
  return characters.every((character) => font.characters.has(character));
}

function measureRun(face: Face, text: string, isRightToLeft: boolean, weight: Weight): Run {
  // A PDF writes the text of a font in it from the left.
  const isMirrored = isRightToLeft && face.file !== null;
  const run = { face, text: isMirrored ? mirrorText(text) : text };
  const direction = isRightToLeft && !isMirrored;
  const advance = face.font
    .shape(run.text, weight, direction)
    .reduce((sum, glyph) => sum + glyph.advance, 0);
  return { ...run, width: advance / face.font.unitsPerEm, isRightToLeft: direction };
}

/** Converts a part of a text to an SVG path. */
export function outlineRun(
  { face: { font }, text, isRightToLeft }: Run,
  weight: Weight,
  at: { x: number; y: number; size: number },
): string {
  const scale = at.size / font.unitsPerEm;
  let { x } = at;
  return font
    .shape(text, weight, isRightToLeft)
    .map((glyph) => {
      const path = placePath(glyph.path, scale, x + glyph.x * scale, at.y - glyph.y * scale);
      x += glyph.advance * scale;
      return path;
    })
    .join('');
}

/** Scales an absolute path of M, L, Q, C and Z, turns it upside down and moves it. */
function placePath(path: string, scale: number, x: number, y: number): string {
  let isX = false;
  return path.replace(/[A-Z]|[ ,]?-?[\d.]+(?:e-?\d+)?/g, (token) => {
    if (/[A-Z]/.test(token)) {
      isX = true;
      return token;
    }
    const value = Number(token.replace(/[ ,]/, ''));
    const placed = isX ? x + value * scale : y - value * scale;
    const separator = isX && /^-?\d/.test(token) ? '' : ' ';
    isX = !isX;
    return `${separator}${Number(placed.toFixed(2))}`;
  });
}
