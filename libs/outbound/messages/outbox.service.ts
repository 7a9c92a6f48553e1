import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import type { CommandContext } from '#platform/kernel/aggregate.js';
import { Config } from '#configuration/config.js';
import { NotFoundError } from '#platform/kernel/errors.js';
import { query } from '#platform/database/connection.js';
import { RepeatedAudits } from '#platform/event-store/commands/repeated-audits.service.js';
import { AuditedWrites } from '#platform/event-store/commands/audited-writes.service.js';
import { CardMessageContents } from './card-message-contents.service.js';
import {
  CARD_MESSAGE_STATE,
  IS_HELD,
  type MessagePreview,
  type OutboxEntry,
} from './card-message.js';
import { CUSTOMER_NAME } from './customer-name.js';
import { GIVE_UP_SECONDS } from './mail.js';
import { chooseRoute } from './message-channel.js';
import { renderCardMail, renderCardSms } from './card-message-texts.js';

const PAGE_SIZE = 50;

/** SQL of the condition that a message was sent and did not arrive. */
const IS_LOST = `state = 'sent' and arrival = 'undelivered'`;

const COLUMNS = `m.uuid as id, ${CARD_MESSAGE_STATE} as state, m.channel, m.created_at as "requestedAt", m.attempts, m.reason,
  m.finished_at as "finishedAt", m.due_at as "dueAt", m.provider_id as "providerId",
  case when m.arrival is not null then
    jsonb_build_object('arrived', m.arrival = 'delivered', 'code', m.arrival_code) end as arrival,
  ${CUSTOMER_NAME} as customer`;

const LATEST = {
  name: 'outbox_latest',
  text: `select ${COLUMNS} from outgoing_messages m
         where m.kind = 'card_link' and m.account_id = $1 order by m.created_at desc, m.id desc limit ${PAGE_SIZE + 1}`,
};

const OLDER = {
  name: 'outbox_older',
  text: `select ${COLUMNS} from outgoing_messages m
         where m.kind = 'card_link' and m.account_id = $1 and (m.created_at, m.id) <
           (select created_at, id from outgoing_messages where uuid = $2 and kind = 'card_link' and account_id = $1)
         order by m.created_at desc, m.id desc limit ${PAGE_SIZE + 1}`,
};

const ONE = {
  name: 'outbox_one',
  text: `select ${COLUMNS}, m.customer_card_id as "cardId" from outgoing_messages m
         where m.uuid = $1 and m.kind = 'card_link' and m.account_id = $2`,
};

/**
 * Enqueues a message anew, so that it is tried for a day, unless it is queued or sent already. An SMS that was not delivered
 * has cost the store its place in the limits of the day, so it stays in the list, and counts.
 */
const SEND = `
  with undelivered as (
    select * from outgoing_messages
    where uuid = $1 and kind = 'card_link' and account_id = $2 and ${IS_LOST}),
  enqueued as (
    update outgoing_messages m
    set state = 'queued', due_at = now(), enqueued_at = now(), give_up_at = now() + interval '${GIVE_UP_SECONDS} seconds',
      attempts = 0, finished_at = null, reason = null, refused_channels = '{}', channel = $3, provider_id = null,
      arrival = null, arrival_code = null, held_channels = '{}', phone_missing = false, counted_at = null
    where m.uuid = $1 and m.kind = 'card_link' and m.account_id = $2
      and (${IS_HELD} or m.state in ('failed', 'skipped') or ${IS_LOST})
    returning m.id),
  kept as (
    insert into outgoing_messages (kind, account_id, customer_id, customer_card_id, state, channel, created_at, enqueued_at,
      give_up_at, counted_at, finished_at, attempts, provider_id, arrival, arrival_code)
    select u.kind, u.account_id, u.customer_id, u.customer_card_id, u.state, u.channel, u.created_at, u.enqueued_at,
      u.give_up_at, u.counted_at, u.finished_at, u.attempts, u.provider_id, u.arrival, u.arrival_code
    from undelivered u join enqueued e on e.id = u.id)
  select id from enqueued`;

/** Shows card links to the users of a store, and sends them at their request. */
@Injectable()
export class Outbox {
  constructor(
    private readonly pool: Pool,
    private readonly writes: AuditedWrites,
    private readonly repeated: RepeatedAudits,
    private readonly contents: CardMessageContents,
    private readonly config: Config,
  ) {}

  /**
   * Lists messages, newest first.
   * @param before the id of the last entry of the page before
   */
  async list(
    accountId: number,
    before: string | null,
  ): Promise<{ entries: OutboxEntry[]; older: string | null }> {
    const rows = await query<OutboxEntry>(
      this.pool,
      before === null
        ? { ...LATEST, values: [accountId] }
        : { ...OLDER, values: [accountId, before] },
    );
    const entries = rows.slice(0, PAGE_SIZE);
    return { entries, older: rows.length > PAGE_SIZE ? (entries.at(-1)?.id ?? null) : null };
  }

  /** Finds a message with a preview of it. @throws NotFoundError */
  async find(
    accountId: number,
    id: string,
  ): Promise<{ entry: OutboxEntry; preview: MessagePreview | null; canBeSent: boolean }> {
    const { entry, content, route } = await this.load(accountId, id);
    const isLost = entry.state === 'sent' && entry.arrival?.arrived === false;
    const isOpen = isLost || ['held', 'failed', 'dropped'].includes(entry.state);
    if (!content || !route) return { entry, preview: null, canBeSent: false };
    // A finished message keeps the channel that it went through.
    const channel = isOpen && route.kind !== 'drop' ? route.channel : entry.channel;
    const waiting = content.unconfirmedConsents;
    const { subject, text } =
      channel === 'email'
        ? renderCardMail(content.content, null, waiting.includes('marketing'))
        : { subject: null, text: renderCardSms(content.content, waiting.includes('sms')) };
    const to = channel === 'email' ? content.contact.email : content.contact.phone;
    return { entry, preview: { to, subject, text }, canBeSent: isOpen && route.kind === 'send' };
  }

  /** Sends a message because a user asks for it. @returns whether it will be sent. @throws NotFoundError */
  async send(by: CommandContext, id: string): Promise<boolean> {
    const { accountId } = by;
    const { cardId, route } = await this.load(accountId, id);
    if (route?.kind !== 'send') return false;
    return this.writes.write(by, async (transaction) => {
      const sent = await query(transaction.manager, SEND, [id, accountId, route.channel]);
      if (sent.length === 0) return transaction.isRepeated;
      const { actor } = by;
      const kind = ['card message', id, actor.type, actor.id];
      await this.repeated.writeWithin(transaction, kind, (_, times) =>
        transaction.audit({
          accountIds: [accountId],
          type: 'card_message.sent_again',
          subject: { card_message_id: id, customer_card_id: cardId, times },
        }),
      );
      return true;
    });
  }

  private async load(accountId: number, id: string) {
    const [row] = await query<OutboxEntry & { cardId: number | null }>(this.pool, {
      ...ONE,
      values: [id, accountId],
    });
    if (!row) throw new NotFoundError('Message');
    const { cardId, ...entry } = row;
    const content = cardId === null ? undefined : await this.contents.find(cardId);
    const channels = { email: this.config.mail !== null, sms: this.config.sms !== null };
    return {
      entry,
      cardId,
      content,
      route:
        content &&
        chooseRoute(content.contact, { ...channels, smsCountries: content.smsCountries }),
    };
  }
}
