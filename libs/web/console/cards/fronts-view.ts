import { loadPart, loadTemplate } from '#platform/kernel/templates.js';
import type { Translations } from '#translations/translations.js';
import type { DraftWarning } from './card-draft.js';
import type { Fronts, listPoints } from './card-fronts.js';

/** The data of views/fronts.eta, which is a part of pages and a fragment of its own. */
export type FrontsView = {
  /** The prefix of every path. */
  root: string;
  fronts: Fronts;
  t: Translations['cardPages'];
  warnings: DraftWarning[];
  /** Null where rewards cannot be changed. */
  points: ReturnType<typeof listPoints> | null;
};

loadPart('card-fronts', import.meta.url, './views/fronts.eta');
loadPart('preview-states', import.meta.url, './views/preview-states.eta');
export const frontsView = loadTemplate<FrontsView>(import.meta.url, './views/fronts.eta');
