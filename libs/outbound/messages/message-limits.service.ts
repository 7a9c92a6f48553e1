import type pg from 'pg';
import type { Config } from '#configuration/config.js';
import { findMailboxKey } from '#platform/kernel/email-address.js';
import { inTransaction } from '#platform/database/connection.js';
import type { WindowCounts } from '#platform/database/window-counts.js';
import { LOCKS } from '#platform/database/locks.js';
import type {
  CapOverrides,
  CapShare,
} from '#platform/event-store/commands/cap-overrides.service.js';
import { renderMessageCount, type MessageTable } from '#loyalty/accounts/message-counts.js';
import type { MessageChannel } from './card-message.js';

/** A message that is about to be handed over. @property to the e-mail address or phone number */
export type LimitedMessage = {
  table: MessageTable;
  id: string | number;
  channel: MessageChannel;
  to: string;
};

/** How many messages a day a store may send by the channel, with those that share it, and how many may go to the address. */
export type MessageLimits = { store: CapShare<number>; address: number };
/** The limit that has been reached. */
export type ReachedLimit = keyof MessageLimits;

/**
 * How many card links one address or phone number gets in a day, from all stores together; likewise other messages, and
 * e-mails that strangers ask for. Enough for a family that shares a mailbox, and too few to flood it (ADR-0089).
 */
export const MESSAGES_PER_ADDRESS_PER_DAY = 10;

/** Which messages count together for one address. */
const SUBJECTS: Record<MessageTable, string> = {
  card_messages: 'card links to',
  customer_messages: 'messages to',
};

const IS_COUNTED = `b.counted_at is not null and b.counted_at > now() - interval '1 day'`;

/** Adds or renews the reservation of a message, unless others of the stores that share the limit have used it up. */
const renderReserve = (table: MessageTable) => `
  with before as (select b.id, ${IS_COUNTED} as counted from ${table} b where b.id = $1)
  update ${table} m set counted_at = now() from before
  where m.id = before.id and m.state = 'queued'
    and ${renderMessageCount('$2', '$3')} - before.counted::int < $4
  returning before.counted as "wasCounted"`;

/** Finds the limits of a store's messages by a channel. */
export async function findLimits(
  overrides: CapOverrides,
  { quotas }: Pick<Config, 'quotas'>,
  accountId: number,
  channel: MessageChannel,
): Promise<MessageLimits> {
  const store = await (channel === 'email'
    ? overrides.getShare('mails_per_day', accountId, quotas.mails_per_day)
    : overrides.getShare('sms_per_day', accountId, quotas.sms_per_day));
  return { store, address: MESSAGES_PER_ADDRESS_PER_DAY };
}

/**
 * Counts a message within the limits of a day before it is handed over: whoever looks only at what was sent sends too much
 * whenever two are on their way. The reservation is in the message's row, so that attempts, other processes and the death
 * of one neither lose nor double it (ADR-0137).
 * @returns the limit that has been reached; null: it may be sent
 */
export function reserveMessage(
  pool: pg.Pool,
  counts: WindowCounts,
  { table, id, channel, to }: LimitedMessage,
  { store, address }: MessageLimits,
): Promise<ReachedLimit | null> {
  return inTransaction(pool, async (client) => {
    // Of two messages that would be the last of a day, one waits.
    await client.query('select pg_advisory_xact_lock(hashtextextended($1, $2))', [
      `${channel} of ${store.owner}`,
      LOCKS.messagesPerDay,
    ]);
    const { rows } = await client.query<{ wasCounted: boolean }>({
      name: `${table}_reserve`,
      text: renderReserve(table),
      values: [id, store.owners, channel, store.max],
    });
    if (!rows[0]) return 'store';
    if (rows[0].wasCounted) return null;
    const subject = createSubject(table, channel, to);
    if ((await counts.addUpTo(client, subject, address)) === null) return null;
    await deleteReservation(client, table, id);
    return 'address';
  });
}

/** Releases the reservation of a message when nothing was handed over, unless another process has sent it since. */
export async function releaseReservation(
  pool: pg.Pool,
  counts: WindowCounts,
  { table, id, channel, to }: LimitedMessage,
): Promise<void> {
  await inTransaction(pool, async (client) => {
    if (!(await deleteReservation(client, table, id))) return;
    await counts.release(client, createSubject(table, channel, to));
  });
}

async function deleteReservation(
  client: pg.ClientBase,
  table: MessageTable,
  id: string | number,
): Promise<boolean> {
  const { rowCount } = await client.query({
    name: `${table}_release`,
    text: `update ${table} set counted_at = null where id = $1 and counted_at is not null and state = 'queued'`,
    values: [id],
  });
  return rowCount === 1;
}

function createSubject(table: MessageTable, channel: MessageChannel, to: string): string[] {
  return [SUBJECTS[table], channel === 'email' ? findMailboxKey(to) : to];
}
