import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import path from 'node:path';
import { listCharacters } from './letters.js';
import { createShapedFont, type ShapedFont } from './shaped-font.js';
import { UNCOVERED } from './uncovered-characters.js';

const EMOJI = '@fontsource-variable/noto-emoji';
/** Pictograms first: the fonts of Han letters have some of them too. */
const FAMILIES = [
  EMOJI,
  ...'arabic armenian bengali devanagari ethiopic georgian gujarati gurmukhi hebrew kannada khmer lao malayalam myanmar oriya sinhala tamil telugu thaana thai symbols'
    .split(' ')
    .map((script) => `@fontsource-variable/noto-sans-${script}`),
  '@fontsource/noto-sans-symbols-2',
];
/** The same Han letters look different in China, Japan and Korea. */
const HAN = { china: 'sc', japan: 'jp', korea: 'kr' } as const;
const KANA = /[\p{Script=Hiragana}\p{Script=Katakana}]/u;
const HANGUL = /\p{Script=Hangul}/u;

/** Parts of a family that other families have better, or that hold few of the characters that they list. */
const UNUSED_PARTS = /^(cyrillic|greek|latin|math|mayan-numerals|vietnamese)/;
/** Before these characters Inter has all that Noto has, but for the digits on keys. */
const FIRST_CHARACTER = 0x530;
/** Files that stay loaded: one takes about 200 KB. */
const MAX_LOADED = 64;

const require = createRequire(import.meta.url);

type NotoFile = { path: string; family: string };
/** Letters of China, Japan or Korea. */
export type HanStyle = keyof typeof HAN;

/** Chooses the shapes of Han letters by the other letters beside them. */
export function chooseHanStyle(texts: readonly string[]): HanStyle {
  const all = texts.join('');
  if (KANA.test(all)) return 'japan';
  return HANGUL.test(all) ? 'korea' : 'china';
}

/**
 * Provides the Noto fonts, for letters and signs that Inter lacks. Their packages cut each family into small files and
 * list the characters of each, so that a text loads only what it needs.
 */
@Injectable()
export class NotoFonts {
  private filesByCharacter: Map<number, NotoFile[]> | undefined;
  private readonly fonts = new LRUCache<string, ShapedFont>({
    max: MAX_LOADED,
    fetchMethod: async (file) => createShapedFont(await decompress(await readFile(file))),
  });

  /** Computes a hash of the versions of all families. */
  computeHash(): string {
    const hash = createHash('sha256');
    for (const family of listFamilies()) {
      const { version } = require(`${family}/package.json`) as { version: string };
      hash.update(`${family} ${version}\n`);
    }
    return hash.digest('hex');
  }

  /** Tells whether one file has all characters of a grapheme. */
  has(grapheme: string): boolean {
    return this.findFiles(grapheme).length > 0;
  }

  /** Loads the font for a grapheme. @returns undefined if there is none */
  async load(grapheme: string, style: HanStyle): Promise<ShapedFont | undefined> {
    const preferred = toHanFamily(HAN[style]);
    const files = this.findFiles(grapheme).toSorted(
      (a, b) => Number(b.family === preferred) - Number(a.family === preferred),
    );
    for (const file of files) {
      const font = await this.fonts.fetch(file.path);
      if (font && listCharacters(grapheme).every((character) => font.characters.has(character))) {
        return font;
      }
    }
    return undefined;
  }

  private findFiles(grapheme: string): NotoFile[] {
    const [first, ...others] = listCharacters(grapheme);
    if (first === undefined) return [];
    this.filesByCharacter ??= readFiles();
    const files = this.filesByCharacter;
    return (files.get(first) ?? []).filter((file) =>
      others.every((character) => files.get(character)?.includes(file)),
    );
  }
}

function toHanFamily(language: string): string {
  return `@fontsource-variable/noto-sans-${language}`;
}

function listFamilies(): string[] {
  return [...FAMILIES, ...Object.values(HAN).map(toHanFamily)];
}

/** Reads which files list which characters. */
function readFiles(): Map<number, NotoFile[]> {
  const uncovered = new Set(expandRanges(UNCOVERED.split(' ')));
  const files = new Map<number, NotoFile[]>();
  for (const family of listFamilies()) {
    const listed = require.resolve(`${family}/unicode.json`);
    const name = family.replace(/^.*\//, '');
    const weight = family.startsWith('@fontsource-variable/') ? 'wght' : '400';
    for (const [part, ranges] of Object.entries(require(listed) as Record<string, string>)) {
      if (UNUSED_PARTS.test(part)) continue;
      // Parts of large families are numbered, in square brackets.
      const file = `${name}-${part.replace(/[[\]]/g, '')}-${weight}-normal.woff2`;
      const entry = { path: path.join(path.dirname(listed), 'files', file), family };
      for (const character of expandRanges(ranges.replace(/U\+/gi, '').split(','))) {
        if (isLeftOut(character, family) || uncovered.has(character)) continue;
        const others = files.get(character);
        if (others) others.push(entry);
        else files.set(character, [entry]);
      }
    }
  }
  return files;
}

/** Tells whether the fonts of Noto do not draw a character: Inter has it, or it means something else to everybody. */
function isLeftOut(character: number, family: string): boolean {
  const isInInter = character < FIRST_CHARACTER && family !== EMOJI;
  return isInInter || (character >= 0xe000 && character <= 0xf8ff);
}

function expandRanges(ranges: string[]): number[] {
  return ranges.flatMap((range) => {
    const [from = NaN, to = from] = range
      .trim()
      .split('-')
      .map((limit) => Number.parseInt(limit, 16));
    return Array.from({ length: to - from + 1 }, (_, index) => from + index);
  });
}

function decompress(woff2: Uint8Array): Promise<Uint8Array> {
  // The package's own index loads the compressor as well, of a megabyte.
  const decode = require('wawoff2/decompress.js') as (woff2: Uint8Array) => Promise<Uint8Array>;
  return decode(woff2);
}
