import type { SideEffect } from '#platform/event-store/port/event-store.js';

/**
 * Makes what a store writes to its customers due, since the quiet hours that it waits for have changed: they themselves, or
 * the store's time zone. What has to wait on is told so anew. Runs in the transaction of the change. A dispatcher that has one
 * of them at that time finds the change when it lets the message wait (`OutgoingMessages.wait`).
 */
export function releaseMessages(accountId: number): SideEffect[] {
  // Announcements first, as where one is cancelled: else each might wait for the other. Whoever has one has lost the lease.
  return [
    {
      text: `update campaigns set due_at = now(), attempts = 0, process = null
        where kind = 'announcement' and account_id = $1 and due_at > now() and state = 'sending'`,
      values: [accountId],
    },
    {
      text: `update outgoing_messages set due_at = now()
        where kind = 'campaign' and channel in ('wallet', 'web_push', 'email', 'sms') and account_id = $1
          and due_at > now() and state = 'queued' and process is null`,
      values: [accountId],
    },
  ];
}
