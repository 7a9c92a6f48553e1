import { Injectable } from '@nestjs/common';
import pg, { Pool } from 'pg';
import { Config } from '#configuration/config.js';
import { findMailboxKey } from '#platform/kernel/email-address.js';
import { inTransaction } from '#platform/database/connection.js';
import { LOCKS } from '#platform/database/locks.js';
import { WindowCounts } from '#platform/database/window-counts.js';
import { CapOverrides } from '#platform/event-store/commands/cap-overrides.service.js';
import { renderMessageCount } from '#loyalty/accounts/message-counts.js';
import type { MessageChannel } from './message-channel.js';
import type { OutgoingKind, OutgoingMessage } from './outgoing-messages.service.js';

type Limited = Pick<OutgoingMessage, 'id' | 'kind' | 'accountId'>;
/** Where a message goes. @property to the e-mail address or phone number */
type Destination = { channel: MessageChannel; to: string };
/** The limit that has been reached: that of the store by the channel, or that of the address. */
export type ReachedLimit = MessageChannel | 'address';

/**
 * How many card links one address or phone number gets in a day, from all stores together; likewise messages of campaigns,
 * and e-mails that strangers ask for. Enough for a family that shares a mailbox, and too few to flood it (ADR-0089).
 */
export const MESSAGES_PER_ADDRESS_PER_DAY = 10;

/** Which messages count together for one address. */
const SUBJECTS: Record<OutgoingKind, string> = {
  card_link: 'card links to',
  campaign: 'messages to',
  mail: 'mails to',
};

/** Adds or renews the reservation of a message, unless others of the stores that share the limit have used it up. */
const RESERVE = {
  name: 'outgoing_messages_reserve',
  text: `
    with before as (
      select b.id, b.counted_at is not null and b.counted_at > now() - interval '1 day' as counted
      from outgoing_messages b where b.id = $1)
    update outgoing_messages m set counted_at = now() from before
    where m.id = before.id and m.state = 'queued'
      and ${renderMessageCount('$2', '$3')} - before.counted::int < $4
    returning before.counted as "wasCounted"`,
};

const DELETE_RESERVATION = {
  name: 'outgoing_messages_release_reservation',
  text: `update outgoing_messages set counted_at = null
         where id = $1 and counted_at is not null and state = 'queued'`,
};

/**
 * Counts messages within the limits of a day before they are handed over: whoever looks only at what was sent sends too
 * much whenever two are on their way. The reservation is in the message's row, so that attempts, other processes and the
 * death of one neither lose nor double it (ADR-0137).
 */
@Injectable()
export class MessageLimits {
  constructor(
    private readonly pool: Pool,
    private readonly counts: WindowCounts,
    private readonly overrides: CapOverrides,
    private readonly config: Config,
  ) {}

  /** Counts a message that is about to be handed over. @returns the limit that has been reached; null: it may be sent */
  async reserve(message: Limited, destination: Destination): Promise<ReachedLimit | null> {
    const { channel } = destination;
    const { quotas } = this.config;
    const store = await (channel === 'email'
      ? this.overrides.getShare('mails_per_day', message.accountId, quotas.mails_per_day)
      : this.overrides.getShare('sms_per_day', message.accountId, quotas.sms_per_day));
    return inTransaction(this.pool, async (client) => {
      // Of two messages that would be the last of a day, one waits.
      await client.query('select pg_advisory_xact_lock(hashtextextended($1, $2))', [
        `${channel} of ${store.owner}`,
        LOCKS.messagesPerDay,
      ]);
      const { rows } = await client.query<{ wasCounted: boolean }>({
        ...RESERVE,
        values: [message.id, store.owners, channel, store.max],
      });
      if (!rows[0]) return channel;
      if (rows[0].wasCounted) return null;
      const subject = createSubject(message, destination);
      const seconds = await this.counts.addUpTo(client, subject, MESSAGES_PER_ADDRESS_PER_DAY);
      if (seconds === null) return null;
      await deleteReservation(client, message);
      return 'address';
    });
  }

  /** Releases the reservation of a message when nothing was handed over, unless another process has sent it since. */
  async release(message: Limited, destination: Destination): Promise<void> {
    await inTransaction(this.pool, async (client) => {
      if (!(await deleteReservation(client, message))) return;
      await this.counts.release(client, createSubject(message, destination));
    });
  }
}

async function deleteReservation(client: pg.ClientBase, { id }: Limited): Promise<boolean> {
  return (await client.query({ ...DELETE_RESERVATION, values: [id] })).rowCount === 1;
}

function createSubject({ kind }: Limited, { channel, to }: Destination): string[] {
  return [SUBJECTS[kind], channel === 'email' ? findMailboxKey(to) : to];
}
