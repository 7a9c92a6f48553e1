import type { RequestSource } from '#kernel/aggregate.js';
import { query } from '#database/connection.js';
import type {
  AuditedTransaction,
  AuditedWriter,
} from '#event-store/commands/audited-writes.service.js';

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
  const stores = await query<{ account_id: number }>(transaction.manager, {
    text: 'select account_id from memberships where user_id = $1 order by account_id',
    values: [userId],
  });
  await transaction.audit({
    accountIds: stores.map(({ account_id }) => account_id),
    type,
    subject: { user_id: userId, ...more },
  });
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
