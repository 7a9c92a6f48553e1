import type { Operation } from '#identity/roles.js';
import type { Translations } from '#translations/en.js';

/** Describes a page of a store at `/app/stores/:account_id/<path>`. Its texts are in `t.console.navigation`. */
export type NavigationEntry = {
  path: keyof Translations['console']['navigation'];
  /** The operation that a role must allow to see the page. */
  operation: Operation;
};

/** An entry of a menu. @property path from the root of the service */
export type NavigationLink = { path: string; title: string; about: string; current: boolean };

/** Lists the pages of a store in the order of the menu. A lib adds an entry for each of its pages. */
export const NAVIGATION: readonly NavigationEntry[] = [
  { path: 'cards', operation: 'listCards' },
  { path: 'customers', operation: 'listCustomers' },
  { path: 'locations', operation: 'listLocations' },
  { path: 'posters', operation: 'listPosters' },
  { path: 'messages', operation: 'outbox.read' },
  { path: 'numbers', operation: 'getStatistics' },
  { path: 'transfers', operation: 'listImports' },
  { path: 'users', operation: 'users.read' },
  { path: 'tokens', operation: 'tokens.read' },
  { path: 'webhooks', operation: 'listWebhookSubscriptions' },
  { path: 'brand', operation: 'updateAccount' },
  { path: 'settings', operation: 'store.settings' },
  { path: 'history', operation: 'listHistory' },
  { path: 'audit', operation: 'audit.read' },
];

/**
 * Lists the pages that the user may open.
 * @param may tells whether the user may do an operation in this store
 * @param at the path of the current page
 */
export function listNavigationLinks(
  accountId: number,
  may: (operation: Operation) => boolean,
  at: string,
  t: Translations,
): NavigationLink[] {
  return NAVIGATION.filter(({ operation }) => may(operation)).map(({ path }) => {
    const { title, about } = t.console.navigation[path];
    const full = `/app/stores/${accountId}/${path}`;
    return { path: full, title, about, current: at === full || at.startsWith(`${full}/`) };
  });
}
