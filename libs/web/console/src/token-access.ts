import type { TokenRestrictions } from '#identity/token.js';
import { ROLE_LABELS } from './role-labels.js';

/**
 * Describes what a token has less than its user, for the page of a store. Names no other store, because its readers may
 * not belong to that.
 * @returns an empty text for a token that has nothing less
 */
export function describeAccess(
  { role, accountIds, isReadOnly }: TokenRestrictions,
  storeId: number,
): string {
  const text = [
    ...(role === null ? [] : [`at most ${ROLE_LABELS[role].text.toLowerCase()}`]),
    ...(isReadOnly ? ['read only'] : []),
    ...(accountIds === null ? [] : [describeReach(accountIds, storeId)]),
  ].join(', ');
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function describeReach(accountIds: readonly number[], storeId: number): string {
  const others = accountIds.filter((id) => id !== storeId).length;
  const otherStores = others === 1 ? '1 other store' : `${others} other stores`;
  if (others === accountIds.length) return `only ${otherStores}`;
  return others === 0 ? 'only this store' : `only this store and ${otherStores}`;
}
