import type { Queryable } from '#platform/database/connection.js';

/** Describes a store to its members, and gives a new store of theirs its first settings. */
export type StoreProfile = {
  id: number;
  name: string;
  timeZone: string;
  locale: string;
  country: string | null;
};

/** Finds the stores that memberships name. The accounts context, which is above this one, implements it. */
export abstract class StoreProfiles {
  /**
   * Finds those that exist, by id.
   * @param by a transaction that the caller has begun
   */
  abstract findProfiles(ids: number[], by?: Queryable): Promise<StoreProfile[]>;
}
