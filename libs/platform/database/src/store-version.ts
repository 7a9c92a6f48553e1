/**
 * SQL for a number that grows with every write to a store, its cards or their rewards, and when a customer of it is erased
 * or given another key. Whoever reads it together with a row may go on with that row for as long as it is the same.
 * @param account SQL for the store's id
 */
export function storeVersion(account: string): string {
  return `coalesce((select v.version from store_versions v where v.account_id = ${account}), 0)`;
}
