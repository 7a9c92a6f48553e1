import { Injectable } from '@nestjs/common';
import type { Font } from 'fontkit';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { Config } from '#configuration/config.js';
import { ConfigError } from '#platform/kernel/config-error.js';
import { describeFileError } from '#platform/kernel/file-errors.js';
import { getErrorMessage } from '#platform/kernel/errors.js';
import { Letters, listCharacters, simplifyText, splitGraphemes, type Face } from './letters.js';
import { chooseHanStyle, NotoFonts } from './noto-fonts.service.js';
import { createShapedFont, type Weight } from './shaped-font.js';

/** The files of the package @expo-google-fonts/inter, as Google Fonts publishes them. */
const INTER: Record<Weight, string> = {
  regular: '400Regular/Inter_400Regular.ttf',
  bold: '700Bold/Inter_700Bold.ttf',
};

/** A font file that is always there, Inter's or the operator's. It is read when it is needed. */
type OwnFile = {
  readonly file: Buffer;
  /** The code points that it has. */
  readonly characters: ReadonlySet<number>;
  readonly face: Promise<Face>;
};

/** What Inter has for certain: Latin letters with their usual marks. */
const PLAIN = /^[\x20-\x7e\u00a0-\u017f\u2013\u2014\u2018-\u201d\u2022\u2026\u20ac]*$/;

const require = createRequire(import.meta.url);

/** Provides the fonts of posters: Inter, the operator's fonts, and Noto for what these lack. */
@Injectable()
export class PosterFonts {
  private readonly files: Record<Weight, OwnFile[]>;
  private hash: string | undefined;

  constructor(
    { posterFonts }: Config,
    private readonly noto: NotoFonts,
  ) {
    this.files = {
      regular: loadFiles('regular', posterFonts?.regular),
      bold: loadFiles('bold', posterFonts?.bold),
    };
  }

  /** Computes the hash of the font files, which is part of a document's hash. */
  computeHash(): string {
    if (this.hash === undefined) {
      const hash = createHash('sha256');
      for (const { file } of Object.values(this.files).flat()) hash.update(file);
      this.hash = hash.update(this.noto.computeHash()).digest('hex');
    }
    return this.hash;
  }

  /** Lists the characters of a text that no font can draw. */
  listIllegible(text: string): string[] {
    if (PLAIN.test(text)) return [];
    return simplifyText(text, (grapheme) => this.canDraw(grapheme)).illegible;
  }

  /** Loads the fonts of a document. @param texts all that it shows */
  async loadLetters(texts: readonly string[]): Promise<Letters> {
    const style = chooseHanStyle(texts);
    const noto = new Set<Face>();
    const graphemes = new Set(
      texts.flatMap((text) =>
        PLAIN.test(text)
          ? []
          : [text.normalize('NFC'), text.normalize('NFKC')].flatMap(splitGraphemes),
      ),
    );
    const names = new Map<unknown, Face>();
    for (const grapheme of graphemes) {
      if (this.hasOwn(grapheme)) continue;
      const font = await this.noto.load(grapheme, style);
      if (!font) continue;
      const face = names.get(font) ?? { name: 'Noto', font, file: null };
      names.set(font, face);
      noto.add(face);
    }
    const faces = async (weight: Weight) => [
      ...(await Promise.all(this.files[weight].map(({ face }) => face))),
      ...noto,
    ];
    return new Letters({ regular: await faces('regular'), bold: await faces('bold') });
  }

  private canDraw(grapheme: string): boolean {
    return this.hasOwn(grapheme) || this.noto.has(grapheme);
  }

  /** Tells whether Inter or the operator's fonts have a grapheme in both weights. */
  private hasOwn(grapheme: string): boolean {
    return Object.values(this.files).every((files) =>
      files.some(({ characters }) =>
        listCharacters(grapheme).every((character) => characters.has(character)),
      ),
    );
  }
}

function loadFiles(weight: Weight, own: string | undefined): OwnFile[] {
  const inter = () => readFileSync(require.resolve(`@expo-google-fonts/inter/${INTER[weight]}`));
  return [
    createFile(`Inter ${weight}`, inter, true),
    ...(own === undefined ? [] : [loadOperatorFile(`Own ${weight}`, own)]),
  ];
}

function loadOperatorFile(name: string, path: string): OwnFile {
  try {
    const file = readFileSync(path);
    assertOutlines(parseFont(file));
    return createFile(name, () => file, false);
  } catch (error) {
    const why = describeFileError(error) ?? getErrorMessage(error);
    throw new ConfigError(`POSTER_FONTS: ${path} cannot be used: ${why}`, { cause: error });
  }
}

/** @param isEmbedded whether a PDF has the font in it */
function createFile(name: string, read: () => Buffer, isEmbedded: boolean): OwnFile {
  let file: Buffer | undefined;
  let characters: ReadonlySet<number> | undefined;
  let face: Promise<Face> | undefined;
  return {
    get file() {
      return (file ??= read());
    },
    get characters() {
      return (characters ??= new Set(parseFont(this.file).characterSet));
    },
    get face() {
      const { file } = this;
      return (face ??= createShapedFont(file).then((font) => ({
        name,
        font,
        file: isEmbedded ? file : null,
      })));
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

/** HarfBuzz reads no compressed fonts. */
function assertOutlines(font: Font): void {
  const { tables } = (font as Font & { directory: { tables: Record<string, unknown> } }).directory;
  if (font.type.startsWith('WOFF'))
    throw new Error('it is a web font; use a file that ends in .ttf or .otf');
  if (!('glyf' in tables) && !('CFF ' in tables)) throw new Error('it contains no glyph outlines');
}
