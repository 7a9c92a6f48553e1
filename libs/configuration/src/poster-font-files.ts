/** The files of fonts for posters. */
export type PosterFontFiles = { regular: string; bold: string };

export function parsePosterFonts(text: string): PosterFontFiles | undefined {
  const [regular = '', bold = regular, ...others] = text.split(',').map((file) => file.trim());
  return regular === '' || bold === '' || others.length > 0 ? undefined : { regular, bold };
}
