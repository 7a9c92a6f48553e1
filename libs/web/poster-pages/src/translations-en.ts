/** The texts of a poster and its page. Numbers arrive formatted, together with the count for the plural. */
export type PosterTranslations = {
  /** Replaces a title that no font can draw. */
  stampCard: string;
  offer: (stamps: string, count: number) => string;
  collect: (stamps: string, count: number) => string;
  scan: string;
  signUp: string;
  /** The heading of the files to print. */
  download: string;
  otherSizes: string;
  paperSize: string;
  /** Bleed is the margin that a print shop cuts off. */
  withBleed: string;
};

const stamps = (text: string, count: number) => `${text} ${count === 1 ? 'stamp' : 'stamps'}`;

export const en: PosterTranslations = {
  stampCard: 'Stamp card',
  offer: (text, count) => `for ${stamps(text, count)}`,
  collect: (text, count) => `Collect ${stamps(text, count)}`,
  scan: 'Scan for your stamp card',
  signUp: 'Get your stamp card',
  download: 'Poster to print',
  otherSizes: 'Other sizes',
  paperSize: 'Paper',
  withBleed: 'PDF with bleed and crop marks',
};
