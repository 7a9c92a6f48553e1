import { Inject, Injectable } from '@nestjs/common';
import pg, { Pool } from 'pg';
import { query } from '#platform/database/connection.js';
import { lockPosition } from '#platform/event-store/port/subscription-position.js';
import { PASS_SENDERS, type PassChannel, type PassSender } from './pass-sender.js';
import { PASS_CHANGES } from './pass-table.service.js';
import { PassUpdates } from './pass-updates.service.js';

/** Where a message of the store is shown: on the pass in a wallet, or in the browser that has the card. */
export type MessagePlace = 'wallet' | 'browser';

/** A message of the store on a pass. @property id of the message to this customer */
export type PassMessage = { id: number; place: MessagePlace; title: string; text: string };

/** @property tag grows with every message, as that of the pass; @property at when it was written */
export type TaggedMessage = PassMessage & { tag: number; at: string };

const CHANNELS: Record<MessagePlace, readonly PassChannel[]> = {
  wallet: ['apple', 'google_object'],
  browser: ['web'],
};

/** A change like any other for a phone, which requests the passes whose tags have risen. */
const WRITE = {
  name: 'pass_messages_write',
  text: `
    with messages as (
      select x.*, nextval('pass_tags') as tag
      from unnest($1::bigint[], $2::jsonb[]) as x (id, message)
    )
    update passes p
    set tag = m.tag, message_tag = m.tag, changed_at = clock_timestamp(),
      message = m.message || jsonb_build_object('at', clock_timestamp())
    from messages m where p.customer_card_id = m.id`,
};

/** Reads the last message of the store on a pass. */
@Injectable()
export class PassMessages {
  constructor(private readonly pool: Pool) {}

  /** Finds the last message, if it is for this place. */
  async find(customerCardId: number, place: MessagePlace): Promise<TaggedMessage | undefined> {
    const [row] = await query<{ message: PassMessage & { at: string }; tag: number }>(this.pool, {
      name: 'pass_messages_find',
      text: `select message, message_tag as tag from passes
             where customer_card_id = $1 and message ->> 'place' = $2`,
      values: [customerCardId, place],
    });
    return row && { ...row.message, tag: row.tag };
  }
}

/** Writes messages of stores on passes, in the dispatcher. */
@Injectable()
export class PassMessageWriter {
  constructor(
    private readonly updates: PassUpdates,
    @Inject(PASS_SENDERS) private readonly senders: PassSender[],
  ) {}

  /**
   * Writes messages on passes and requests their updates, in the caller's transaction. Holds the lock under which tags are
   * taken: a phone would miss one that is lower than the last it has.
   * @param messages by customer card, at most one for each
   */
  async write(
    client: pg.ClientBase,
    messages: { customerCardId: number; accountId: number; message: PassMessage }[],
  ): Promise<void> {
    await lockPosition(client, PASS_CHANGES);
    const ids = messages.map(({ customerCardId }) => customerCardId);
    const texts = messages.map(({ message }) => JSON.stringify(message));
    await client.query({ ...WRITE, values: [ids, texts] });
    for (const place of ['wallet', 'browser'] as const) {
      const ofPlace = messages
        .filter(({ message }) => message.place === place)
        .map(({ customerCardId }) => customerCardId);
      const senders = this.senders.filter(({ channel }) => CHANNELS[place].includes(channel));
      for (const sender of senders)
        await this.updates.request(client, await sender.findTargets(ofPlace, client), 1);
    }
  }
}
