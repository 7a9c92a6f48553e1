import type { TokenRestrictions } from '#identity/token.js';
import type { Localization } from '#translations/translations.js';
import { capitalize } from '#web/pages/capitalize.js';

/**
 * Describes what a token has less than its user, for the page of a store. Names no other store, because its readers may
 * not belong to that.
 * @returns an empty text for a token that has nothing less
 */
export function describeAccess(
  { role, accountIds, isReadOnly }: TokenRestrictions,
  storeId: number,
  localization: Localization,
): string {
  const { tokens, roles } = localization.t.console;
  const text = [
    ...(role === null ? [] : [tokens.atMost({ role: roles.inText[role] })]),
    ...(isReadOnly ? [tokens.isReadOnly] : []),
    ...(accountIds === null ? [] : [describeReach(accountIds, storeId, localization)]),
  ].join(', ');
  return capitalize(text, localization.locale);
}

function describeReach(
  accountIds: readonly number[],
  storeId: number,
  localization: Localization,
): string {
  const { onlyThis, onlyOthers, thisAndOthers } = localization.t.console.tokens.reach;
  const othersCount = accountIds.filter((id) => id !== storeId).length;
  if (othersCount === 0) return onlyThis;
  const text = othersCount === accountIds.length ? onlyOthers : thisAndOthers;
  return text({ count: othersCount });
}
