/**
 * Renders how many messages of some stores count within 24 hours by one channel, from their `counted_at` on: those that
 * were sent, and those that are being sent. What limits them and what shows them count the same.
 * @param accounts an SQL expression of their ids @param channel an SQL expression
 */
export function renderMessageCount(accounts: string, channel: string): string {
  return `(select count(*) from outgoing_messages r
    where r.account_id = any (${accounts}) and r.channel = ${channel} and r.counted_at > now() - interval '1 day')`;
}
