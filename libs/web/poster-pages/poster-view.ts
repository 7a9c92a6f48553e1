import { getCustomerTranslations, type Translations } from '#translations/translations.js';
import type { Poster } from '#loyalty/posters/poster.js';
import { PAPERS, type PaperSize } from './paper.js';
import type { PosterContent } from './poster-content.js';

/** The data of a poster's page. */
export type PosterView = {
  svg: string;
  /** The text of the picture, for screen readers. */
  text: string;
  title: string;
  storeName: string;
  /** The path of the signup form; null while it is closed. */
  signup: string | null;
  /** The path of the documents, without their extension. */
  path: string;
  /** The poster's own paper size. */
  paper: string;
  papers: { name: string; query: string }[];
  t: Translations['poster'];
};

/** Creates the data of a poster's page. @param root the prefix of every path */
export function createPosterView({
  poster,
  content,
  svg,
  root,
}: {
  poster: Poster;
  content: PosterContent;
  svg: string;
  root: string;
}): PosterView {
  const { title, storeName, offers, aim } = content;
  const { poster: t, posterConsole } = getCustomerTranslations(content).t;
  const sizes = Object.keys(PAPERS) as PaperSize[];
  const offerTexts = offers.map(({ reward, price }) => `${reward} ${price}`);
  return {
    svg,
    text: [title, storeName, ...(offerTexts.length > 0 ? offerTexts : [aim]), t.scan].join('. '),
    title,
    storeName,
    signup: poster.active ? `${root}/join/${poster.slug}` : null,
    path: `${root}/posters/${poster.slug}`,
    paper: posterConsole.papers[poster.paperSize],
    papers: sizes.map((size) => ({
      name: posterConsole.papers[size],
      query: `?paper_size=${size}`,
    })),
    t,
  };
}
