const COLUMNS = 'account_id, type, actor, channel, request_id, subject, recorded_at';

/**
 * Entries of the audit log as a part of a statement that changes many records by itself: one by the system for
 * each. What people change is audited by PlainWrites.
 * @param rows an SQL relation
 * @param columns SQL expressions over `rows`
 */
export function auditBySystem(
  rows: string,
  {
    accountId,
    type,
    requestId,
    subject,
  }: Record<'accountId' | 'type' | 'requestId' | 'subject', string>,
): string {
  return `insert into audit_log (${COLUMNS})
    select ${accountId}, ${type}, '{"type": "system", "id": 0}', 'system', ${requestId}, ${subject}, now()
    from ${rows}`;
}
