import type { SideEffect } from '#platform/event-store/port/event-store.js';

/**
 * Makes a new store share the quotas of the store that its owner has owned for longest, or of the one with which that shares
 * them. Runs with the commit that creates the store, so that there is no store without it.
 */
export function shareQuotas(accountId: number, ownerId: number): SideEffect {
  return {
    text: `insert into es.cap_sharing (owner, shared_with)
           select $1::bigint, coalesce(s.shared_with, m.account_id)
           from memberships m left join es.cap_sharing s on s.owner = m.account_id
           where m.user_id = $2 and m.role = 'owner' and m.account_id <> $1
           order by m.created_at, m.account_id limit 1
           on conflict do nothing`,
    values: [accountId, ownerId],
  };
}
