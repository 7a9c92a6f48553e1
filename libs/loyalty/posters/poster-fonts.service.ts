import { Injectable } from '@nestjs/common';
import type { Font } from 'fontkit';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { Config } from '#configuration/config.js';
import { ConfigError } from '#platform/kernel/config-error.js';
import { describeFileError } from '#platform/kernel/file-errors.js';
import { getErrorMessage } from '#platform/kernel/errors.js';
import type { Weight } from './drawing.js';
import { splitByDirection } from './text-direction.js';

/** The files of the package @expo-google-fonts/inter, as Google Fonts publishes them. */
const INTER: Record<Weight, string> = {
  regular: '400Regular/Inter_400Regular.ttf',
  bold: '700Bold/Inter_700Bold.ttf',
};

/** No OpenType features. An explicit list keeps pdfkit from laying out word by word, without kerning across spaces. */
export const FEATURES: never[] = [];

export type Face = { name: string; file: Buffer; readonly font: Font };
/** A part of a text in one font. */
export type Run = { face: Face; text: string };

const require = createRequire(import.meta.url);
const graphemes = new Intl.Segmenter(undefined, { granularity: 'grapheme' });
/** Characters without a shape, which fonts need not contain. */
const SHAPELESS = /\p{Default_Ignorable_Code_Point}/u;
/** Control characters, surrogates, and marks that change the direction of text. */
const UNWANTED = /(?![\t\r\n])[\p{Cc}\p{Cs}\p{Co}\p{Cn}\u200E\u200F\u202A-\u202E\u2066-\u2069]/gu;

/** Provides the fonts of posters: Inter, and the operator's fonts for characters that it lacks. */
@Injectable()
export class PosterFonts {
  private readonly faces: Record<Weight, Face[]>;
  /** The hash of the font files, which is part of a document's hash. */
  readonly hash: string;

  constructor({ posterFonts }: Config) {
    this.faces = {
      regular: loadFaces('regular', posterFonts?.regular),
      bold: loadFaces('bold', posterFonts?.bold),
    };
    const hash = createHash('sha256');
    for (const { file } of Object.values(this.faces).flat()) hash.update(file);
    this.hash = hash.digest('hex');
  }

  /** Measures a text in ems. */
  width(text: string, weight: Weight): number {
    return this.runs(text, weight).reduce(
      (sum, { face: { font }, text }) =>
        sum + font.layout(text, FEATURES).advanceWidth / font.unitsPerEm,
      0,
    );
  }

  /** Removes characters that no font can draw; empty if nothing is left. */
  removeIllegible(text: string, weight: Weight): string {
    const parts = [...graphemes.segment(text.normalize('NFC').replace(UNWANTED, ''))]
      .map(({ segment }) => segment)
      .filter((part) => this.findFace(part, weight) !== undefined);
    const legible = parts.join('').replace(/\s+/g, (space) => (space === '\u00A0' ? space : ' '));
    return /[\p{L}\p{N}\p{S}]/u.test(legible) ? legible.trim() : '';
  }

  /** Splits a line into parts in the order in which they are drawn, from the left. */
  runs(line: string, weight: Weight): Run[] {
    return splitByDirection(line).flatMap(({ text, isRightToLeft }) => {
      const runs = this.splitByFace(text, weight);
      return isRightToLeft ? runs.toReversed() : runs;
    });
  }

  /** Splits a text where it needs another font. Spaces stay with the letters beside them, for these to be one run. */
  private splitByFace(text: string, weight: Weight): Run[] {
    const complete = this.findFace(text, weight);
    if (complete) return [{ face: complete, text }];
    const runs: Run[] = [];
    for (const { segment } of graphemes.segment(text)) {
      const face = this.findFace(segment, weight) ?? this.getFirstFace(weight);
      const last = runs.at(-1);
      if (last?.face === face) last.text += segment;
      else runs.push({ face, text: segment });
    }
    return runs;
  }

  /** Converts a text to an SVG path, from its left end on the baseline. */
  outline(text: string, weight: Weight, at: { x: number; y: number; size: number }): string {
    let { x } = at;
    return this.runs(text, weight)
      .map(({ face: { font }, text }) => {
        const { glyphs, positions } = font.layout(text, FEATURES);
        const scale = at.size / font.unitsPerEm;
        return glyphs
          .map((glyph, index) => {
            const { xAdvance = 0, xOffset = 0, yOffset = 0 } = positions[index] ?? {};
            const path = glyph.path
              .scale(scale, -scale)
              .translate(x + xOffset * scale, at.y - yOffset * scale)
              .toSVG();
            x += xAdvance * scale;
            return path;
          })
          .join('');
      })
      .join('');
  }

  /** Finds the first font that has all characters of a text. */
  private findFace(text: string, weight: Weight): Face | undefined {
    return this.faces[weight].find(({ font }) =>
      [...text].every(
        (character) =>
          SHAPELESS.test(character) || font.hasGlyphForCodePoint(character.codePointAt(0) ?? 0),
      ),
    );
  }

  private getFirstFace(weight: Weight): Face {
    const [face] = this.faces[weight];
    if (!face) throw new Error(`there is no font for ${weight} letters`);
    return face;
  }
}

function loadFaces(weight: Weight, own: string | undefined): Face[] {
  const inter = readFileSync(require.resolve(`@expo-google-fonts/inter/${INTER[weight]}`));
  return [
    createFace(`Inter ${weight}`, inter),
    ...(own === undefined ? [] : [loadOperatorFace(`Own ${weight}`, own)]),
  ];
}

function loadOperatorFace(name: string, path: string): Face {
  try {
    const face = createFace(name, readFileSync(path));
    assertOutlines(face.font);
    return face;
  } catch (error) {
    const why = describeFileError(error) ?? getErrorMessage(error);
    throw new ConfigError(`POSTER_FONTS: ${path} cannot be used: ${why}`, { cause: error });
  }
}

function createFace(name: string, file: Buffer): Face {
  let font: Font | undefined;
  return {
    name,
    file,
    get font() {
      return (font ??= parseFont(file));
    },
  };
}

function parseFont(file: Buffer): Font {
  // Loaded on demand: it takes 10 MB, and few processes ever render a poster. Shares pdfkit's copy.
  const { create } = require('fontkit') as typeof import('fontkit');
  const font = create(file);
  if (!('layout' in font)) throw new Error('it contains several fonts; use a file with one');
  return font;
}

function assertOutlines(font: Font): void {
  const { tables } = (font as Font & { directory: { tables: Record<string, unknown> } }).directory;
  if (!('glyf' in tables) && !('CFF ' in tables)) throw new Error('it contains no glyph outlines');
}
