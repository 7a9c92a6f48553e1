import type { Operation } from '#identity/roles.js';

/** Describes a page of a store at `/app/stores/:account_id/<path>`. */
export type NavigationEntry = {
  path: string;
  title: string;
  /** A short description for the overview. */
  about: string;
  /** The operation that a role must allow to see the page. */
  operation: Operation;
};

/** An entry of a menu. @property path from the root of the service */
export type NavigationLink = { path: string; title: string; about: string; current: boolean };

/** Lists the pages of a store in the order of the menu. A lib adds an entry for each of its pages. */
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
    about: 'Links sent to customers',
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
    about: 'Name, language, signup',
    operation: 'store.settings',
  },
  {
    path: 'audit',
    title: 'Log',
    about: 'Changes to users and tokens',
    operation: 'audit.read',
  },
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
): NavigationLink[] {
  return NAVIGATION.filter(({ operation }) => may(operation)).map(({ path, title, about }) => {
    const full = `/app/stores/${accountId}/${path}`;
    return { path: full, title, about, current: at === full || at.startsWith(`${full}/`) };
  });
}
