import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { query } from '#platform/database/connection.js';
import type { PageRange } from '#platform/http/page.js';
import type { HolderChannel, MessageReason } from './message-channel.js';
import {
  NO_MESSAGES,
  type MessageCounts,
  type MessageRecipient,
  type RecipientState,
} from './message-recipient.js';

/** The days whose messages the counts of a rule have. */
const RULE_DAYS = 30;

type RecipientRow = {
  id: number;
  announcement_id: number | null;
  rule_id: number | null;
  customer_id: number;
  customer_name: string | null;
  customer_card_id: number | null;
  state: RecipientState;
  channel: HolderChannel | null;
  reason: MessageReason | null;
  due_at: Date | null;
  created_at: Date;
  finished_at: Date | null;
};

type Statement = { name: string; text: string; values: unknown[] };

type CountRow = {
  owner: number;
  state: RecipientState;
  channel: HolderChannel | null;
  count: number;
};

/** SQL of the name of a customer; null once they are erased. */
export const CUSTOMER_NAME = `(select concat_ws(' ', n.first_name, n.last_name) from customer_names n
  join customers e on e.id = n.id where n.id = m.customer_id and e.erased_at is null)`;

const COLUMNS = `m.id, m.announcement_id, m.rule_id, m.customer_id, ${CUSTOMER_NAME} as customer_name, m.customer_card_id,
  m.state, case when m.state = 'skipped' then null else m.channel end as channel,
  case when q.message_id is null then m.reason else 'silent' end as reason,
  case when m.state = 'queued' then m.due_at end as due_at, m.created_at, m.finished_at`;

const OF_ANNOUNCEMENT = `select ${COLUMNS} from customer_messages m
  left join silent_messages q on q.message_id = m.id where m.announcement_id = $1 and m.customer_id > $2`;
const OF_RULE = `select ${COLUMNS} from customer_messages m
  left join silent_messages q on q.message_id = m.id where m.rule_id = $1 and m.id < $2`;

/** Reads the messages to customers, and counts them. */
@Injectable()
export class MessageRecipients {
  constructor(private readonly pool: Pool) {}

  /** Lists the messages of an announcement, by customer. @param state null: in any */
  listOfAnnouncement(
    id: number,
    state: RecipientState | null,
    { after, limit }: PageRange,
  ): Promise<MessageRecipient[]> {
    const order = 'order by m.customer_id limit $3';
    const values = [id, after?.[0] ?? 0, limit];
    return this.list(
      state === null
        ? { name: 'customer_messages_of_announcement', text: `${OF_ANNOUNCEMENT} ${order}`, values }
        : {
            name: 'customer_messages_of_announcement_in',
            text: `${OF_ANNOUNCEMENT} and m.state = $4 ${order}`,
            values: [...values, state],
          },
    );
  }

  /** Lists the messages of a rule, newest first. @param state null: in any */
  listOfRule(
    id: number,
    state: RecipientState | null,
    { after, limit }: PageRange,
  ): Promise<MessageRecipient[]> {
    const order = 'order by m.id desc limit $3';
    const values = [id, after?.[0] ?? Number.MAX_SAFE_INTEGER, limit];
    return this.list(
      state === null
        ? { name: 'customer_messages_of_rule', text: `${OF_RULE} ${order}`, values }
        : {
            name: 'customer_messages_of_rule_in',
            text: `${OF_RULE} and m.state = $4 ${order}`,
            values: [...values, state],
          },
    );
  }

  countOfAnnouncements(ids: number[]): Promise<Map<number, MessageCounts>> {
    return this.count({
      name: 'customer_messages_count_of_announcements',
      text: `select announcement_id as owner, state, channel, count(*) as count from customer_messages
             where announcement_id = any ($1) group by 1, 2, 3`,
      values: [ids],
    });
  }

  /** Counts the messages of rules in the last 30 days. */
  countOfRules(ids: number[]): Promise<Map<number, MessageCounts>> {
    return this.count({
      name: 'customer_messages_count_of_rules',
      text: `select rule_id as owner, state, channel, count(*) as count from customer_messages
             where rule_id = any ($1) and created_at > now() - interval '${RULE_DAYS} days' group by 1, 2, 3`,
      values: [ids],
    });
  }

  private async list(statement: Statement): Promise<MessageRecipient[]> {
    return (await query<RecipientRow>(this.pool, statement)).map(toRecipient);
  }

  private async count(statement: Statement): Promise<Map<number, MessageCounts>> {
    const counts = new Map<number, MessageCounts>();
    for (const { owner, state, channel, count } of await query<CountRow>(this.pool, statement)) {
      const ofOwner = counts.get(owner) ?? structuredClone(NO_MESSAGES);
      ofOwner[state] += count;
      if (state === 'sent' && channel !== null) ofOwner.sentBy[channel] += count;
      counts.set(owner, ofOwner);
    }
    return counts;
  }
}

function toRecipient(row: RecipientRow): MessageRecipient {
  return {
    id: row.id,
    announcementId: row.announcement_id,
    ruleId: row.rule_id,
    customerId: row.customer_id,
    customerName: row.customer_name,
    customerCardId: row.customer_card_id,
    state: row.state,
    channel: row.channel,
    reason: row.reason,
    dueAt: row.due_at,
    createdAt: row.created_at,
    finishedAt: row.finished_at,
  };
}
