/** What a user is in a store. */
export type Role = 'owner';

/** What a page shows or does, named as the operation of the API that does the same, or `<records>.<verb>`. */
export type Operation = string;

/** So far every member of a store has full access to it. */
export function may(role: Role, _operation: Operation): boolean {
  return role === 'owner';
}
