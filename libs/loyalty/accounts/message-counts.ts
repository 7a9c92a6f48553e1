/** The tables of messages to customers. A message counts within the limits of a day from its `counted_at`. */
const TABLES = ['card_messages', 'customer_messages'] as const;
export type MessageTable = (typeof TABLES)[number];

/**
 * Renders how many messages of some stores count within 24 hours by one channel: those that were sent, and those that are
 * being sent. What limits them and what shows them count the same.
 * @param accounts an SQL expression of their ids @param channel an SQL expression
 */
export function renderMessageCount(accounts: string, channel: string): string {
  const queries = TABLES.map(
    (table) => `select from ${table} r
        where r.account_id = any (${accounts}) and r.channel = ${channel} and r.counted_at > now() - interval '1 day'`,
  );
  return `(select count(*) from (${queries.join(' union all ')}) counted)`;
}
