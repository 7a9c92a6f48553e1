import { describe, expect, it } from '@jest/globals';
import { getTranslations } from '#translations/translations.js';
import { findBreadcrumb, groupLinks, listNavigationLinks } from './navigation.js';

const { t } = getTranslations('en');
const listGroups = (at: string, may: (operation: string) => boolean = () => true) =>
  groupLinks(listNavigationLinks(7, may, at, t), t);

describe('the menu of a store', () => {
  it('marks the part and the page that the user is on, also below the page', () => {
    for (const at of ['/app/stores/7/tokens', '/app/stores/7/tokens/3/revoke']) {
      const current = listGroups(at).filter((group) => group.current);
      expect(current.map(({ title }) => title)).toEqual(['Store']);
      const links = current.flatMap((group) => group.links.filter((link) => link.current));
      expect(links.map(({ path }) => path)).toEqual(['/app/stores/7/tokens']);
    }
    expect(listGroups('/app/stores/7').some(({ current }) => current)).toBe(false);
  });

  it('leaves out parts without a page that the user may open, and names one with a single page after it', () => {
    const groups = listGroups('', (operation) => operation === 'listLocations');
    expect(groups).toMatchObject([{ title: 'Locations', path: '/app/stores/7/locations' }]);
  });
});

describe('findBreadcrumb', () => {
  const find = (at: string, storeId: number | null = 7) =>
    findBreadcrumb(
      {
        user: {},
        store: storeId === null ? null : { id: storeId },
        links: storeId === null ? [] : listNavigationLinks(storeId, () => true, at, t),
        t,
      },
      at,
    );

  it.each([
    ['/app/stores/7/tokens/3/revoke', '/app/stores/7/tokens', 'API tokens'],
    ['/app/stores/7/tokens', '/app/stores/7', 'Overview'],
    ['/app/stores/7/messages/rules', '/app/stores/7', 'Overview'],
    ['/app/stores/7/elsewhere', '/app/stores/7', 'Overview'],
  ])('leads from %s to %s', (at, path, text) => {
    expect(find(at)).toEqual({ path, text });
  });

  it.each([
    ['/app/account/codes', '/app/account', 'Your account'],
    ['/app/account', '/app', 'Your stores'],
    ['/app/new-store', '/app', 'Your stores'],
  ])('leads from %s, which is outside of a store, to %s', (at, path, text) => {
    expect(find(at, null)).toEqual({ path, text });
  });

  it('is nothing at the overview, at the list of stores, and without a session', () => {
    expect([find('/app/stores/7'), find('/app', null)]).toEqual([null, null]);
    expect(findBreadcrumb({ user: null, store: null, links: [], t }, '/app/sign-in')).toBeNull();
  });
});
