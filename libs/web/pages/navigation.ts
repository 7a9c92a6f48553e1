import type { Operation } from '#identity/roles.js';
import type { Translations } from '#translations/translations.js';

/** Lists the parts of the menu in their order. */
const GROUPS = ['counter', 'customers', 'cards', 'numbers', 'store'] as const;

export type NavigationGroup = (typeof GROUPS)[number];

/** Describes a page of a store at `/app/stores/:account_id/<path>`. Its texts are in `t.console.navigation`. */
export type NavigationEntry = {
  path: keyof Translations['console']['navigation'];
  group: NavigationGroup;
  /** The operation that a role must allow to see the page. */
  operation: Operation;
};

/** An entry of a menu. @property path from the root of the service */
export type NavigationLink = {
  path: string;
  title: string;
  about: string;
  group: NavigationGroup;
  current: boolean;
};

/** A part of the menu. @property path of its first page @property title of its only page, or its own */
export type MenuGroup = {
  path: string;
  title: string;
  current: boolean;
  links: NavigationLink[];
};

/** Lists the pages of a store in the order of the menu's parts. A lib adds an entry for each of its pages. */
export const NAVIGATION: readonly NavigationEntry[] = [
  { path: 'counter', group: 'counter', operation: 'counter.use' },
  { path: 'customers', group: 'customers', operation: 'listCustomers' },
  { path: 'messages', group: 'customers', operation: 'outbox.read' },
  { path: 'transfers', group: 'customers', operation: 'listImports' },
  { path: 'cards', group: 'cards', operation: 'listCards' },
  { path: 'posters', group: 'cards', operation: 'listPosters' },
  { path: 'numbers', group: 'numbers', operation: 'getStatistics' },
  { path: 'history', group: 'numbers', operation: 'listHistory' },
  { path: 'settings', group: 'store', operation: 'store.settings' },
  { path: 'brand', group: 'store', operation: 'updateAccount' },
  { path: 'locations', group: 'store', operation: 'listLocations' },
  { path: 'users', group: 'store', operation: 'users.read' },
  { path: 'tokens', group: 'store', operation: 'tokens.read' },
  { path: 'webhooks', group: 'store', operation: 'listWebhookSubscriptions' },
  { path: 'audit', group: 'store', operation: 'audit.read' },
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
  return NAVIGATION.filter(({ operation }) => may(operation)).map(({ path, group }) => {
    const { title, about } = t.console.navigation[path];
    const full = `/app/stores/${accountId}/${path}`;
    const current = at === full || at.startsWith(`${full}/`);
    return { path: full, title, about, group, current };
  });
}

/** Groups the pages for the menu. Leaves out a part of which the user may open no page. */
export function groupLinks(links: readonly NavigationLink[], t: Translations): MenuGroup[] {
  return GROUPS.flatMap((group): MenuGroup[] => {
    const own = links.filter((link) => link.group === group);
    const [first, ...others] = own;
    if (!first) return [];
    const title = others.length === 0 ? first.title : t.console.groups[group];
    return [{ path: first.path, title, current: own.some(({ current }) => current), links: own }];
  });
}
