import type pg from 'pg';
import type { Actor, Channel } from '#kernel/aggregate.js';

/** What was done to plain records, by whom. Loyalty facts have their history instead. */
export type AuditEntry = {
  /** Null: it concerns no single store. */
  accountId: number | null;
  /** `<record>.<past tense>`, such as `token.revoked`. */
  type: string;
  actor: Actor;
  channel: Channel;
  requestId: string;
  /** Ids and what changed; never a secret. */
  subject: object;
};

const COLUMNS = 'account_id, type, actor, channel, request_id, subject, recorded_at';

/** In the transaction of the change itself. */
export async function writeAuditEntry(client: pg.PoolClient, entry: AuditEntry): Promise<void> {
  await client.query({
    name: 'audit_log_write',
    text: `insert into audit_log (${COLUMNS}) values ($1, $2, $3, $4, $5, $6, now())`,
    values: [
      entry.accountId,
      entry.type,
      JSON.stringify(entry.actor),
      entry.channel,
      entry.requestId,
      JSON.stringify(entry.subject),
    ],
  });
}

/**
 * The same as a part of a statement that changes many records by itself: an entry of the system for each.
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
