import type { Poster } from '#posters/poster.js';
import { PAPERS } from './paper.js';
import type { PosterContent } from './poster-content.js';
import type { PosterTranslations } from './translations-en.js';
import { findPosterTranslations } from './translations.js';

/** What the page of a poster shows. */
export type PosterView = {
  svg: string;
  /** All that stands in the picture, for those who do not see it. */
  text: string;
  title: string;
  storeName: string;
  /** Where people sign up; null while they cannot. */
  signup: string | null;
  /** Of the documents, without their ending. */
  path: string;
  /** The poster's own. */
  paper: string;
  papers: { name: string; query: string }[];
  t: PosterTranslations;
};

/** @param root in front of every path */
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
  const { title, storeName, offers, aim, lang } = content;
  const { t } = findPosterTranslations(lang);
  const offerTexts = offers.map(({ reward, price }) => `${reward} ${price}`);
  return {
    svg,
    text: [title, storeName, ...(offerTexts.length > 0 ? offerTexts : [aim]), t.scan].join('. '),
    title,
    storeName,
    signup: poster.active ? `${root}/join/${poster.slug}` : null,
    path: `${root}/posters/${poster.slug}`,
    paper: PAPERS[poster.paperSize].name,
    papers: Object.entries(PAPERS).map(([size, { name }]) => ({
      name,
      query: `?paper_size=${size}`,
    })),
    t,
  };
}
