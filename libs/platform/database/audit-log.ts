const COLUMNS = 'account_id, type, actor, channel, request_id, subject, recorded_at';

/**
 * Renders SQL that audits a bulk change by the system: one entry per row. AuditedWrites audits changes that people
 * make.
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
