import type { CommandContext } from '#platform/kernel/aggregate.js';
import type { SideEffect } from '#platform/event-store/port/event-store.js';

/** The user who owns a store from its beginning. @property personal it is their own store */
export type InitialOwner = { userId: number; personal: boolean };

/** Makes a user the owner of a new store, with the audit entry. Runs with the commit that creates the store. */
export function grantInitialOwner(
  { userId, personal }: InitialOwner,
  { accountId, actor, channel, requestId, ipAddress }: CommandContext,
): SideEffect {
  return {
    text: `with added as (
             insert into memberships (user_id, account_id, role, personal, created_at)
             values ($1, $2, 'owner', $3, now()) on conflict do nothing returning account_id
           )
           insert into audit_log
             (account_id, type, actor, channel, request_id, ip_address, subject, recorded_at)
           select account_id, 'member.added', $4::jsonb, $5, $6, $7::inet, $8::jsonb, now()
           from added`,
    values: [
      userId,
      accountId,
      personal,
      JSON.stringify(actor),
      channel,
      requestId,
      ipAddress ?? null,
      JSON.stringify({ user_id: userId, role: 'owner' }),
    ],
  };
}
