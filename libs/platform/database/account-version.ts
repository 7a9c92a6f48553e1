/**
 * Renders SQL for a number that grows with every write to the records on which an account's commands are decided. It
 * also grows when somebody in the account is erased or gets another key.
 * @param account SQL for the account's id
 */
export function renderAccountVersion(account: string): string {
  return `coalesce((select v.version from account_versions v where v.account_id = ${account}), 0)`;
}
