import { Injectable } from '@nestjs/common';
import pg, { Pool } from 'pg';
import { Config } from '#configuration/config.js';
import { findMailboxKey } from '#platform/kernel/email-address.js';
import { Batcher } from '#platform/database/batcher.js';
import { inTransaction, query } from '#platform/database/connection.js';
import type { Job } from '#platform/database/job-queue.js';
import { LOCKS } from '#platform/database/locks.js';
import { WindowCounts } from '#platform/database/window-counts.js';
import {
  CapOverrides,
  type CapShare,
} from '#platform/event-store/commands/cap-overrides.service.js';
import { renderMessageCount } from '#loyalty/accounts/message-counts.js';
import type { MessageChannel } from './message-channel.js';
import type { OutgoingKind, OutgoingMessage } from './outgoing-messages.service.js';

type Limited = Pick<Job<OutgoingMessage>, 'id' | 'kind' | 'accountId' | 'leaseUntil'>;
type Share = CapShare<number>;
/** Where a message goes. @property to the e-mail address or phone number */
type Destination = { channel: MessageChannel; to: string };
type Reservation = { message: Limited; destination: Destination; isHandedOver: boolean };
/** The limit that has been reached: that of the store by the channel, or that of the address. */
export type ReachedLimit = MessageChannel | 'address';

/**
 * How many card links one address or phone number gets in a day, from all stores together; likewise messages of campaigns,
 * and e-mails that strangers ask for. Enough for a family that shares a mailbox, and too few to flood it (ADR-0089).
 */
export const MESSAGES_PER_ADDRESS_PER_DAY = 10;

const BATCHES_AT_ONCE = 2;
const BATCH_SIZE = 100;

/** Which messages count together for one address. */
const SUBJECTS: Record<OutgoingKind, string> = {
  card_link: 'card links to',
  campaign: 'messages to',
  mail: 'mails to',
};

/**
 * Adds or renews the reservations of messages whose lease has not ended, as far as others of the stores that share the limit
 * have left room: first those that counted before. $5 their ids and $6 the ends of their leases, $7 whether they are handed
 * over now.
 */
const RESERVE = {
  name: 'outgoing_messages_reserve',
  text: `
    with before as (
      select b.id, b.counted_at is not null and b.counted_at > now() - interval '1 day' as counted
      from unnest($5::bigint[], $6::timestamptz[]) x (id, lease)
      join outgoing_messages b on b.id = x.id and b.id = any ($5) and b.due_at = x.lease and b.state = 'queued'
      for update of b),
    allowed as (
      select id, counted from before order by counted desc, id
      limit greatest(0, $3 - ${renderMessageCount('$1', '$2')} + (select count(*) from before where counted)))
    update outgoing_messages m
    set counted_at = now(), handed_over_at = case when $4 then now() else m.handed_over_at end
    from allowed a where m.id = a.id and m.id = any ($5)
    returning m.id, a.counted as "wasCounted"`,
};

const DELETE_RESERVATION = {
  name: 'outgoing_messages_release_reservation',
  text: `update outgoing_messages set counted_at = null
         where id = $1 and due_at = $2::timestamptz and counted_at is not null and state = 'queued'`,
};

/**
 * Counts messages within the limits of a day before they are handed over: whoever looks only at what was sent sends too
 * much whenever two are on their way. The reservation is in the message's row, so that attempts, other processes and the
 * death of one neither lose nor double it (ADR-0089).
 */
@Injectable()
export class MessageLimits {
  private readonly reservations = new Batcher<Reservation, ReachedLimit | null>(
    BATCHES_AT_ONCE,
    BATCH_SIZE,
    (items) => this.reserveAll(items),
  );

  constructor(
    private readonly pool: Pool,
    private readonly counts: WindowCounts,
    private readonly overrides: CapOverrides,
    private readonly config: Config,
  ) {}

  /**
   * Counts a message that is about to be handed over.
   * @param isHandedOver whether that is marked too, since it must not be sent again by whoever goes on
   * @returns the limit that has been reached; null: it may be sent
   */
  reserve(
    message: Limited,
    destination: Destination,
    isHandedOver: boolean,
  ): Promise<ReachedLimit | null> {
    return this.reservations.add({ message, destination, isHandedOver });
  }

  /** Counts how many more messages a store may send by a channel now. */
  async countRemaining(accountId: number, channel: MessageChannel): Promise<number> {
    const { owners, max } = await this.getShare(accountId, channel);
    const [row] = await query<{ count: number }>(this.pool, {
      name: 'outgoing_messages_of_day',
      text: `select ${renderMessageCount('$1', '$2')} as count`,
      values: [owners, channel],
    });
    return Math.max(0, max - (row?.count ?? 0));
  }

  /**
   * Releases the reservation of a message that did not arrive, unless another process goes on with it. The next attempt reserves
   * anew: it may go by another channel, to another address, or never be made.
   */
  async release(message: Limited, destination: Destination): Promise<void> {
    await inTransaction(this.pool, async (client) => {
      if (!(await deleteReservation(client, message))) return;
      await this.counts.release(client, createSubject(message, destination));
    });
  }

  private getShare(accountId: number, channel: MessageChannel): Promise<Share> {
    const quota = `${channel === 'email' ? 'mails' : 'sms'}_per_day` as const;
    return this.overrides.getShare(quota, accountId, this.config.quotas[quota]);
  }

  private async reserveAll(
    items: Reservation[],
  ): Promise<PromiseSettledResult<ReachedLimit | null>[]> {
    const groups = new Map<
      string,
      { items: Reservation[]; channel: MessageChannel; store: Share }
    >();
    for (const item of items) {
      const { message, destination, isHandedOver } = item;
      const { channel } = destination;
      const store = await this.getShare(message.accountId, channel);
      const key = `${channel} ${store.owner} ${isHandedOver}`;
      const group = groups.get(key) ?? { items: [], channel, store };
      groups.set(key, group);
      group.items.push(item);
    }
    const results = new Map<Reservation, Promise<ReachedLimit | null>>();
    for (const group of groups.values()) {
      const reserving = this.reserveOfStore(group.items, group.channel, group.store);
      for (const item of group.items) {
        results.set(
          item,
          reserving.then((limits) => limits.get(item) ?? null),
        );
      }
    }
    return Promise.allSettled(items.map((item) => results.get(item) ?? null));
  }

  /** @returns the limits that have been reached */
  private reserveOfStore(
    items: Reservation[],
    channel: MessageChannel,
    store: Share,
  ): Promise<Map<Reservation, ReachedLimit>> {
    return inTransaction(this.pool, async (client) => {
      // Of two messages that would be the last of a day, one waits.
      await client.query('select pg_advisory_xact_lock(hashtextextended($1, $2))', [
        `${channel} of ${store.owner}`,
        LOCKS.messagesPerDay,
      ]);
      const { rows } = await client.query<{ id: number; wasCounted: boolean }>({
        ...RESERVE,
        values: [
          store.owners,
          channel,
          store.max,
          items.some(({ isHandedOver }) => isHandedOver),
          items.map(({ message }) => message.id),
          items.map(({ message }) => message.leaseUntil),
        ],
      });
      const wasCounted = new Map(rows.map((row) => [row.id, row.wasCounted]));
      const limits = new Map<Reservation, ReachedLimit>(
        items.filter(({ message }) => !wasCounted.has(message.id)).map((item) => [item, channel]),
      );
      const fresh = items.filter(({ message }) => wasCounted.get(message.id) === false);
      if (fresh.length === 0) return limits;
      const subjects = fresh.map(({ message, destination }) => createSubject(message, destination));
      const seconds = await this.counts.addEachUpTo(client, subjects, MESSAGES_PER_ADDRESS_PER_DAY);
      for (const [i, item] of fresh.entries()) {
        if (seconds[i] === null) continue;
        limits.set(item, 'address');
        await deleteReservation(client, item.message);
      }
      return limits;
    });
  }
}

async function deleteReservation(
  client: pg.ClientBase,
  { id, leaseUntil }: Limited,
): Promise<boolean> {
  return (await client.query({ ...DELETE_RESERVATION, values: [id, leaseUntil] })).rowCount === 1;
}

function createSubject({ kind }: Limited, { channel, to }: Destination): string[] {
  return [SUBJECTS[kind], channel === 'email' ? findMailboxKey(to) : to];
}
