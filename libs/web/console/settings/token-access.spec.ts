import { describe, expect, it } from '@jest/globals';
import { UNRESTRICTED } from '#identity/token.js';
import { getTranslations } from '#translations/translations.js';
import { describeAccess } from './token-access.js';

describe('the description of what a token may access', () => {
  it.each([
    [{}, ''],
    [{ role: 'staff' as const }, 'At most staff'],
    [{ isReadOnly: true, accountIds: [7] }, 'Read only, only this store'],
    [{ accountIds: [3, 7] }, 'Only this store and 1 other store'],
    [{ accountIds: [3] }, 'Only 1 other store'],
    [{ accountIds: [3, 4] }, 'Only 2 other stores'],
  ])('names each restriction: %j', (restrictions, text) => {
    const localization = getTranslations('en');
    expect(describeAccess({ ...UNRESTRICTED, ...restrictions }, 7, localization)).toBe(text);
  });
});
