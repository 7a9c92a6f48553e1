import type { PlainTransaction } from '#event-store/plain-writes.service.js';

/** What happened to a user is recorded for every store that the user may reach. */
export async function auditOfUser(
  transaction: PlainTransaction,
  userId: number,
  type: string,
  more: object = {},
): Promise<void> {
  const stores: { account_id: number }[] = await transaction.manager.query(
    'select account_id from memberships where user_id = $1 order by account_id',
    [userId],
  );
  await transaction.audit({
    accountIds: stores.map(({ account_id }) => account_id),
    type,
    subject: { user_id: userId, ...more },
  });
}
