import type { Operation } from '#identity/roles.js';
import type { Translations } from '#translations/translations.js';
import type { IconName } from './icons.js';

/** Lists the parts of the menu in their order. */
const GROUPS = ['counter', 'customers', 'cards', 'numbers', 'store'] as const;

export type NavigationGroup = (typeof GROUPS)[number];

/** Describes a page of a store at `/app/stores/:account_id/<path>`. Its texts are in `t.console.navigation`. */
export type NavigationEntry = {
  path: keyof Translations['console']['navigation'];
  group: NavigationGroup;
  icon: IconName;
  /** The operation that a role must allow to see the page. */
  operation: Operation;
  /** Where the page is one of several tabs, their paths below that of the entry. */
  tabs?: readonly string[];
};

/** An entry of a menu. @property path from the root of the service @property isShown whether it or a tab is the current page */
export type NavigationLink = {
  path: string;
  title: string;
  group: NavigationGroup;
  icon: IconName;
  current: boolean;
  isShown: boolean;
};

/** A part of the menu. @property path of its first page, as is the icon @property title of its only page, or its own */
export type MenuGroup = {
  path: string;
  title: string;
  icon: IconName;
  current: boolean;
  links: NavigationLink[];
};

/** The page above another, to which its breadcrumb leads. @property path from the root of the service */
export type Breadcrumb = { path: string; text: string };

type BreadcrumbFrame = {
  user: object | null;
  store: { id: number } | null;
  links: readonly NavigationLink[];
  t: Translations;
};

/** Lists the pages of a store in the order of the menu's parts. A lib adds an entry for each of its pages. */
export const NAVIGATION: readonly NavigationEntry[] = [
  { path: 'counter', group: 'counter', icon: 'scan-qr-code', operation: 'counter.use' },
  { path: 'customers', group: 'customers', icon: 'users', operation: 'listCustomers' },
  {
    path: 'messages',
    group: 'customers',
    icon: 'mail',
    operation: 'outbox.read',
    tabs: ['announcements', 'rules', 'settings', 'links'],
  },
  { path: 'transfers', group: 'customers', icon: 'arrow-down-up', operation: 'listImports' },
  { path: 'cards', group: 'cards', icon: 'wallet-cards', operation: 'listCards' },
  { path: 'posters', group: 'cards', icon: 'printer', operation: 'listPosters' },
  { path: 'numbers', group: 'numbers', icon: 'chart-column', operation: 'getStatistics' },
  { path: 'history', group: 'numbers', icon: 'rotate-ccw-clock', operation: 'listHistory' },
  { path: 'settings', group: 'store', icon: 'settings', operation: 'store.settings' },
  { path: 'brand', group: 'store', icon: 'palette', operation: 'updateAccount' },
  { path: 'locations', group: 'store', icon: 'map-pin', operation: 'listLocations' },
  { path: 'users', group: 'store', icon: 'user-cog', operation: 'users.read' },
  { path: 'tokens', group: 'store', icon: 'key-round', operation: 'tokens.read' },
  { path: 'webhooks', group: 'store', icon: 'webhook', operation: 'listWebhookSubscriptions' },
  { path: 'audit', group: 'store', icon: 'scroll-text', operation: 'audit.read' },
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
  return NAVIGATION.filter(({ operation }) => may(operation)).map((entry) => {
    const { path, group, icon, tabs = [] } = entry;
    const { title } = t.console.navigation[path];
    const full = `/app/stores/${accountId}/${path}`;
    const current = at === full || at.startsWith(`${full}/`);
    const isShown = at === full || tabs.some((tab) => at === `${full}/${tab}`);
    return { path: full, title, group, icon, current, isShown };
  });
}

/** Groups the pages for the menu. Leaves out a part of which the user may open no page. */
export function groupLinks(links: readonly NavigationLink[], t: Translations): MenuGroup[] {
  return GROUPS.flatMap((group): MenuGroup[] => {
    const own = links.filter((link) => link.group === group);
    const [first, ...others] = own;
    if (!first) return [];
    const title = others.length === 0 ? first.title : t.console.groups[group];
    return [
      {
        path: first.path,
        icon: first.icon,
        title,
        current: own.some(({ current }) => current),
        links: own,
      },
    ];
  });
}

/** Creates the breadcrumb of a page of the menu. It is shown at other paths too: those to which its forms are sent. */
export function linkToOverview(store: { id: number }, t: Translations): Breadcrumb {
  return { path: `/app/stores/${store.id}`, text: t.console.overview };
}

/** Creates the breadcrumb of a page below one of the menu. A rejected form is shown at the path it was sent to. */
export function linkToEntry(
  store: { id: number },
  path: NavigationEntry['path'],
  t: Translations,
): Breadcrumb {
  return { path: `/app/stores/${store.id}/${path}`, text: t.console.navigation[path].title };
}

/** Finds the page above a page of the console: its entry of the menu, the overview of the store, or the list of stores. */
export function findBreadcrumb(
  { user, store, links, t }: BreadcrumbFrame,
  at: string,
): Breadcrumb | null {
  const stores = { path: '/app', text: t.console.stores };
  if (user === null || at === stores.path) return null;
  if (store === null) {
    const account = { path: '/app/account', text: t.signIn.account.title };
    return at.startsWith(`${account.path}/`) ? account : stores;
  }
  const home = linkToOverview(store, t);
  if (at === home.path) return null;
  const entry = links.find(({ current }) => current);
  return entry && !entry.isShown ? { path: entry.path, text: entry.title } : home;
}
