import type { SideEffect } from '#platform/event-store/port/event-store.js';

/**
 * Makes what a store writes to its customers due, since the quiet hours have changed that it waits for, or the time zone of
 * the store. A message that still has to wait is scheduled again when a dispatcher claims it. Runs in the transaction of the
 * change. A dispatcher that has claimed a message finds the change when it makes it wait (`OutgoingMessages.wait`).
 */
export function releaseMessages(accountId: number): SideEffect[] {
  // Announcements first, as where one is cancelled: else each might wait for the other. A dispatcher that holds one loses its lease.
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
