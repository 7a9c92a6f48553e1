import { findChanges, type Changes } from '#platform/kernel/changes.js';

type UserDetails = { name?: string; email: string };

/**
 * Compares two versions of a user, for the audit log. That is kept for ever, so addresses are there only in part: who
 * reads it sees which domain an account went to, and nobody's address.
 */
export function findUserChanges(before: UserDetails, after: UserDetails): Changes {
  const { email, ...changes } = findChanges(before, after);
  if (!email) return changes;
  return { ...changes, email: { from: maskAddress(before.email), to: maskAddress(after.email) } };
}

function maskAddress(address: string): string {
  const [first = ''] = address;
  return `${first}…${address.slice(address.lastIndexOf('@'))}`;
}
