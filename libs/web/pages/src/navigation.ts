import type { Operation } from '#identity/roles.js';

/** A page of a store, found at `/app/stores/:account_id/<path>`. */
export type NavigationEntry = {
  path: string;
  title: string;
  /** A few words, for those who look for something. */
  about: string;
  /** Who may do this sees the page. */
  operation: Operation;
};

/** As it stands in a menu. @property path from the root of the service */
export type NavigationLink = { path: string; title: string; about: string; current: boolean };

/** The pages of a store, in the order of its menu. A lib adds a line for each of its pages. */
export const NAVIGATION: readonly NavigationEntry[] = [
  {
    path: 'locations',
    title: 'Locations',
    about: 'Your shops on the map',
    operation: 'listLocations',
  },
  { path: 'posters', title: 'Posters', about: 'To print and hang up', operation: 'listPosters' },
  {
    path: 'messages',
    title: 'Messages',
    about: 'What customers were sent',
    operation: 'outbox.read',
  },
  { path: 'users', title: 'Users', about: 'Who can sign in here', operation: 'users.read' },
  {
    path: 'tokens',
    title: 'API tokens',
    about: 'For tills and web shops',
    operation: 'tokens.read',
  },
  {
    path: 'settings',
    title: 'Settings',
    about: 'Name, language, signing up',
    operation: 'store.settings',
  },
  {
    path: 'audit',
    title: 'Log',
    about: 'What was done to users and tokens',
    operation: 'audit.read',
  },
];

/**
 * @param may whether the user may do an operation in this store
 * @param at the path of the page that the menu stands on
 */
export function listNavigationLinks(
  accountId: number,
  may: (operation: Operation) => boolean,
  at: string,
): NavigationLink[] {
  return NAVIGATION.filter(({ operation }) => may(operation)).map(({ path, title, about }) => {
    const full = `/app/stores/${accountId}/${path}`;
    return { path: full, title, about, current: at === full || at.startsWith(`${full}/`) };
  });
}
