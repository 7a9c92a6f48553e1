import { getCustomerTranslations, type Translations } from '#translations/translations.js';
import type { Poster } from '#loyalty/posters/poster.js';
import { loadPart } from '#platform/kernel/templates.js';
import { PAPERS, type PaperSize } from './paper.js';
import type { PosterContent } from './poster-content.js';
import { POSTER_DESIGNS } from './poster-design.js';

loadPart('print-poster', import.meta.url, './views/print-poster.eta');

/** The data of a poster's page. */
export type PosterView = {
  svg: string;
  /** The text of the picture, for screen readers. */
  text: string;
  title: string;
  storeName: string;
  /** The path of the signup form; null while it is closed. */
  signup: string | null;
  signupText: string;
  printText: string;
  /** The data of the part `print-poster`. */
  print: {
    path: string;
    designs: { value: string; text: string; picture: string }[];
    sizes: { value: string; text: string }[];
    size: string;
    t: Translations['posterConsole'];
  };
};

/** Creates the data of a poster's page. @param root the prefix of every path */
export function createPosterView({
  poster,
  content,
  isOpen,
  svg,
  root,
}: {
  poster: Poster;
  content: PosterContent;
  isOpen: boolean;
  svg: string;
  root: string;
}): PosterView {
  const { title, storeName, offers, aim } = content;
  const { poster: t, posterConsole, signup } = getCustomerTranslations(content).t;
  const sizes = Object.keys(PAPERS) as PaperSize[];
  const offerTexts = offers.map(({ reward, price }) => `${reward} ${price}`);
  const path = `${root}/posters/${poster.slug}`;
  return {
    svg,
    text: [title, storeName, ...(offerTexts.length > 0 ? offerTexts : [aim]), t.scan].join('. '),
    title,
    storeName,
    signup: isOpen ? `${root}/join/${poster.slug}` : null,
    signupText: isOpen ? t.signUp : signup.closed,
    printText: t.download,
    print: {
      path,
      designs: POSTER_DESIGNS.map((value) => ({
        value,
        text: posterConsole.designs[value],
        picture: `${path}.png?paper_size=a6&design=${value}`,
      })),
      sizes: sizes.map((value) => ({ value, text: posterConsole.papers[value] })),
      size: poster.paperSize,
      t: posterConsole,
    },
  };
}
