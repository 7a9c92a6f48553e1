import { describe, expect, it } from '@jest/globals';
import { getTranslations } from '#translations/translations.js';
import { groupLinks, listNavigationLinks } from './navigation.js';

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
