/** What a poster and its page say. Numbers come as text in the form of the language, beside the count itself. */
export type PosterTranslations = {
  /** In place of a title of which nothing can be drawn. */
  stampCard: string;
  offer: (stamps: string, count: number) => string;
  collect: (stamps: string, count: number) => string;
  scan: string;
  signUp: string;
  /** To print. */
  download: string;
  otherSizes: string;
  paperSize: string;
  /** Bleed is what a print shop cuts off. */
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
