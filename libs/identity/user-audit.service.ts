import type { Actor, RequestSource } from '#platform/kernel/aggregate.js';
import { query, type Queryable } from '#platform/database/connection.js';
import type {
  AuditedTransaction,
  AuditedWriter,
} from '#platform/event-store/commands/audited-writes.service.js';

/** Notifies every API process of changes of users, memberships and tokens. */
export const IDENTITY_CHANNEL = 'inkpad_identity';

/** Writes the audit entry and notifies every API process, which clears its cache. */
export async function auditChange(
  transaction: AuditedTransaction,
  type: string,
  accountIds: readonly number[],
  subject: object,
  actor?: Actor,
): Promise<void> {
  await transaction.audit({ accountIds, type, subject, ...(actor && { actor }) });
  await query(transaction.manager, 'select pg_notify($1, $2)', [IDENTITY_CHANNEL, type]);
}

/**
 * Records what happened to a user, in every store of the user.
 * @param userId null: an attempt with an address that nobody has
 */
export async function auditUser(
  transaction: AuditedTransaction,
  userId: number | null,
  type: string,
  more: object = {},
): Promise<void> {
  const accountIds = await listStoreIds(transaction.manager, userId);
  await transaction.audit({ accountIds, type, subject: { user_id: userId, ...more } });
}

/** Lists the stores of a user. A change to a user or token is recorded for each of them. */
export async function listStoreIds(by: Queryable, userId: number | null): Promise<number[]> {
  const memberships = await query<{ account_id: number }>(by, {
    text: 'select account_id from memberships where user_id = $1 order by account_id',
    values: [userId],
  });
  return memberships.map(({ account_id }) => account_id);
}

/** Creates the writer for actions of a user outside of the pages of the console, such as signing in. */
export function createUserWriter(source: RequestSource, userId: number): AuditedWriter {
  return { ...createSystemWriter(source), actor: { type: 'user', id: userId }, channel: 'owner' };
}

/** Creates the writer for actions on a user by a visitor who has not signed in. */
export function createSystemWriter({ requestId, ipAddress }: RequestSource): AuditedWriter {
  return {
    actor: { type: 'system', id: 0 },
    channel: 'system',
    requestId,
    ...(ipAddress !== undefined && { ipAddress }),
  };
}
