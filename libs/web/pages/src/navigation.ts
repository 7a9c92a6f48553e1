import type { Operation } from '#identity/roles.js';

/** A page of a store, found at `/app/stores/:account_id/<path>`. */
export type NavigationEntry = {
  path: string;
  title: string;
  /** Who may do this sees the page. */
  operation: Operation;
};

/** As it stands in a menu. @property path from the root of the service */
export type NavigationLink = { path: string; title: string; current: boolean };

/** The pages of a store, in the order of its menu. A lib adds a line for each of its pages. */
export const NAVIGATION: readonly NavigationEntry[] = [
  { path: 'locations', title: 'Locations', operation: 'listLocations' },
  { path: 'posters', title: 'Posters', operation: 'listPosters' },
  { path: 'messages', title: 'Messages', operation: 'outbox.read' },
  { path: 'users', title: 'Users', operation: 'users.read' },
  { path: 'tokens', title: 'API tokens', operation: 'tokens.read' },
  { path: 'settings', title: 'Settings', operation: 'store.settings' },
  { path: 'audit', title: 'Log', operation: 'audit.read' },
];

/**
 * @param may whether the user may do an operation in this store
 * @param at the path of the page that the menu stands on
 */
export function linksOf(
  accountId: number,
  may: (operation: Operation) => boolean,
  at: string,
): NavigationLink[] {
  return NAVIGATION.filter(({ operation }) => may(operation)).map(({ path, title }) => {
    const full = `/app/stores/${accountId}/${path}`;
    return { path: full, title, current: at === full || at.startsWith(`${full}/`) };
  });
}
