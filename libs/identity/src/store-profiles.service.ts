import type { EntityManager } from 'typeorm';

/** What members see of a store, and what a new store of theirs begins with. */
export type StoreProfile = {
  id: number;
  name: string;
  timeZone: string;
  locale: string;
  country: string | null;
};

/** Knows the stores that memberships name. The context of accounts, which is above this one, fills it. */
export abstract class StoreProfiles {
  /**
   * Finds those that exist, by id.
   * @param manager of a transaction that the caller has begun
   */
  abstract findProfiles(ids: number[], manager?: EntityManager): Promise<StoreProfile[]>;
}
