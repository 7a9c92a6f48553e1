import { isExpired } from '#loyalty/cards/card.js';
import type { Localization } from '#translations/translations.js';
import { loadAsset } from '#web/pages/assets.js';
import { findFlashMessage } from '#web/pages/page-query.js';
import { loadView } from '#web/pages/view.js';
import { POSTER_DESIGNS } from './poster-design.js';
import { PAPERS, type PaperSize } from './paper.js';
import type { CardChoice, ListedPoster } from './listed-poster.js';

export const POSTER_SCRIPT = loadAsset(import.meta.url, './assets/poster-form.js');

export type PosterListView = ReturnType<typeof createPosterListView>;
export const posterListView = loadView<PosterListView>(import.meta.url, './views/posters.eta');

export type PosterFormView = ReturnType<typeof createPosterFormView>;
export const posterFormView = loadView<PosterFormView>(import.meta.url, './views/poster-form.eta');

/** The addresses of a poster that everybody may open. */
export type PosterUrls = { signup: string; display: string };

/** Creates the data of the list. Paths are from the root of the service. */
export function createPosterListView(
  { posters, next }: { posters: ListedPoster[]; next: number | null },
  {
    base,
    cards,
    canEdit,
    hasCards,
    done,
    localization,
    now,
    toUrls,
    isOnlyLocal,
  }: {
    base: string;
    cards: string;
    canEdit: boolean;
    hasCards: boolean;
    done: unknown;
    localization: Localization;
    now: Date;
    toUrls: (listed: ListedPoster) => PosterUrls;
    isOnlyLocal: boolean;
  },
) {
  const t = localization.t.posterConsole;
  return {
    base,
    cards,
    canEdit,
    hasCards,
    flash: findFlashMessage(done, { removed: t.removed }),
    warning: isOnlyLocal && posters.length > 0 ? localization.t.words.localOnly : '',
    next: next === null ? null : `${base}?after=${next}`,
    posters: posters.map((listed) => ({
      title: listed.poster.title,
      card: listed.card.name,
      ...describeState(listed, now, t),
      paper: t.papers[listed.poster.paperSize],
      path: `${base}/${listed.poster.id}`,
      public: `/posters/${listed.poster.slug}`,
      signups: describeSignups(listed, localization),
      urls: toUrls(listed),
    })),
  };
}

/** What the form shows. @property listed null: the poster is new */
export type PosterFormState = {
  listed: ListedPoster | null;
  done: unknown;
};

/** Creates the data of the form. Paths are from the root of the service. */
export function createPosterFormView(
  {
    listed,
    done,
    values,
  }: PosterFormState & { values: Record<'card_id' | 'paper_size' | 'title', string> },
  {
    base,
    cards,
    localization,
    now,
    toUrls,
    isOnlyLocal,
    leftOut,
  }: {
    base: string;
    cards: CardChoice[];
    localization: Localization;
    now: Date;
    toUrls: (listed: ListedPoster) => PosterUrls;
    isOnlyLocal: boolean;
    /** What no font of the documents has. */
    leftOut: { text: string; characters: string }[];
  },
) {
  const t = localization.t.posterConsole;
  const state = listed && describeState(listed, now, t);
  const messages = {
    saved: t.saved,
    created: isOnlyLocal ? t.createdLocal : t.created,
    paused: t.pausedNow,
    // The card may keep sign-ups closed, which the page says.
    resumed: state?.mood === 'good' ? t.resumedNow : '',
  };
  const sizes = Object.keys(PAPERS) as PaperSize[];
  const path = listed ? `${base}/${listed.poster.id}` : base;
  const cardId = listed?.poster.cardId ?? (values.card_id || cards[0]?.id);
  const { paper_size: size, title } = values;
  const query = new URLSearchParams({ card_id: String(cardId), paper_size: size, title });
  return {
    base,
    path,
    title: listed?.poster.title ?? t.newTitle,
    flash: findFlashMessage(done, messages, listed?.poster.title),
    isNew: done === 'created',
    warning: listed && isOnlyLocal ? localization.t.words.localOnly : '',
    leftOut: leftOut.map((part) => t.leftOut(part)),
    picture: listed
      ? `${path}/picture?v=${encodeURIComponent(listed.poster.updatedAt)}`
      : cardId === undefined
        ? null
        : `${base}/new/picture?${query}`,
    preview: `${base}/new/picture`,
    cards: cards.map(({ id, name }) => ({ value: String(id), text: name })),
    sizes: sizes.map((value) => ({ value, text: t.papers[value], hint: t.paperHints[value] })),
    designs: listDesigns(path, t),
    modes: Object.entries(t.modes).map(([value, text]) => ({ value, text })),
    poster: listed && state && describePoster(listed, state, toUrls(listed), localization),
  };
}

function listDesigns(path: string, t: Localization['t']['posterConsole']) {
  return POSTER_DESIGNS.map((value) => ({
    value,
    text: t.designs[value],
    picture: `${path}/picture?design=${value}`,
  }));
}

/** Describes a poster that is saved. */
function describePoster(
  listed: ListedPoster,
  state: PosterState,
  urls: PosterUrls,
  localization: Localization,
) {
  const t = localization.t.posterConsole;
  const { active, cardId, paperSize: size, slug } = listed.poster;
  return {
    isActive: active,
    ...state,
    card: listed.card.name,
    cardId,
    print: t.printSize({ size: t.papers[size] }),
    signups: describeSignups(listed, localization),
    public: `/posters/${slug}`,
    urls,
  };
}

type PosterState = { state: string; mood: '' | 'good' | 'warn' };

/** Describes whether people can sign up. */
function describeState(
  { poster, card }: ListedPoster,
  now: Date,
  t: Localization['t']['posterConsole'],
): PosterState {
  if (card.archivedAt !== null) return { state: t.closed.archived, mood: 'warn' };
  if (isExpired(card, now)) return { state: t.closed.expired, mood: 'warn' };
  return poster.active ? { state: t.open, mood: 'good' } : { state: t.paused, mood: '' };
}

function describeSignups(
  { signups, scanned }: ListedPoster,
  { t: { posterConsole: t } }: Localization,
): string {
  if (signups === 0) return t.noSignups;
  const count = t.signups({ count: signups });
  return scanned === 0 ? count : `${count}, ${t.scanned({ count: scanned })}`;
}
