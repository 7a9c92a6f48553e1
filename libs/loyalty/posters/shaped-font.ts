import type * as harfbuzz from 'harfbuzzjs';

export type Weight = 'regular' | 'bold';

/** A glyph with its outline, in ems with y upwards. */
type PlacedGlyph = { path: string; advance: number; x: number; y: number };

/** A font whose texts HarfBuzz shapes. */
export type ShapedFont = {
  /** The code points that it has. */
  characters: ReadonlySet<number>;
  /** The path units of an em. */
  unitsPerEm: number;
  /** Shapes a text of one direction: its glyphs stand from the left to the right. */
  shape(text: string, weight: Weight, isRightToLeft: boolean): PlacedGlyph[];
};

const WEIGHTS: Record<Weight, number> = { regular: 400, bold: 700 };

/**
 * Reads a font file, TrueType or OpenType. A variable font draws both weights; any other looks the same in both.
 * HarfBuzz shapes the letters of all scripts, and its fonts are freed with the objects that hold them.
 */
export async function createShapedFont(file: Uint8Array): Promise<ShapedFont> {
  // Loaded on demand: few processes ever render a poster.
  const hb = await import('harfbuzzjs');
  const face = new hb.Face(new hb.Blob(new Uint8Array(file).buffer));
  const createFont = (weight: Weight) => {
    const font = new hb.Font(face);
    font.setVariations([new hb.Variation('wght', WEIGHTS[weight])]);
    return font;
  };
  const fonts = { regular: createFont('regular'), bold: createFont('bold') };
  return {
    characters: new Set(face.collectUnicodes()),
    unitsPerEm: face.upem,
    shape: (text, weight, isRightToLeft) => shape(hb, fonts[weight], text, isRightToLeft),
  };
}

function shape(
  hb: typeof harfbuzz,
  font: harfbuzz.Font,
  text: string,
  isRightToLeft: boolean,
): PlacedGlyph[] {
  const buffer = new hb.Buffer();
  buffer.addText(text);
  buffer.guessSegmentProperties();
  buffer.setDirection(isRightToLeft ? hb.Direction.RTL : hb.Direction.LTR);
  hb.shape(font, buffer);
  const positions = buffer.getGlyphPositions();
  return buffer.getGlyphInfos().map(({ codepoint: glyph }, index) => {
    const { xAdvance = 0, xOffset = 0, yOffset = 0 } = positions[index] ?? {};
    return {
      // Texts are measured many times before they are drawn.
      get path() {
        return font.glyphToPath(glyph);
      },
      advance: xAdvance,
      x: xOffset,
      y: yOffset,
    };
  });
}
