import { Injectable } from '@nestjs/common';
import { Pool } from 'pg';
import { query } from '#platform/database/connection.js';
import type { PageRange } from '#platform/http/page.js';
import type { CampaignKind } from './campaign.js';
import type { HolderChannel } from '#outbound/messages/message-channel.js';
import { CUSTOMER_NAME } from '#outbound/messages/customer-name.js';
import {
  NO_MESSAGES,
  type MessageCounts,
  type MessageRecipient,
  type PendingCounts,
  type RecipientState,
  type UnsentGroup,
} from './message-recipient.js';

/** The days whose messages the counts of a rule have. */
const RULE_DAYS = 30;

type CountRow = {
  id: number;
  state: RecipientState;
  channel: HolderChannel | null;
  count: number;
};

/** SQL of why a message was not sent. An erased person is not told apart from somebody who has no card any more. */
const REASON = `case m.reason when 'erased' then 'no_card' else m.reason end`;

/** SQL of whether no server has accepted an update of the pass since the message `m` is on it, and that of `i` failed. */
const IS_PENDING = `i.last_error is not null and i.removed_at is null and m.state = 'sent'
  and m.channel = case i.platform when 'web' then 'web_push' else 'wallet' end
  and not exists (
    select from pass_installations o
    where o.customer_card_id = i.customer_card_id and (o.platform = 'web') = (i.platform = 'web')
      and o.last_synced_at >= m.finished_at)`;

const SELECT = `select m.id, m.announcement_id as "announcementId", m.rule_id as "ruleId", m.customer_id as "customerId",
    ${CUSTOMER_NAME} as "customerName", m.customer_card_id as "customerCardId", m.state,
    case when m.state = 'skipped' then null else m.channel end as channel,
    case when q.message_id is null then ${REASON} else 'silent' end as reason,
    case when exists (select from pass_installations i where i.customer_card_id = m.customer_card_id and ${IS_PENDING})
      then 'pending' else m.arrival end as arrival,
    case when m.state = 'queued' then m.due_at end as "dueAt", m.created_at as "createdAt", m.finished_at as "finishedAt"
  from outgoing_messages m left join silent_messages q on q.message_id = m.id`;

/**
 * Lists of the messages of a campaign, and their counts. Those of an announcement are listed by customer. Those of a rule are
 * selected and ordered by a range of rules: else the planner may walk back through the messages of others to find the newest.
 */
const STATEMENTS = {
  announcement: {
    text: `${SELECT} where m.announcement_id = $1 and m.customer_id > $2`,
    order: 'order by m.customer_id limit $3',
    start: 0,
    ofIds: 'announcement_id = any ($1)',
  },
  rule: {
    text: `${SELECT} where m.rule_id between $1 and $1 and m.id < $2`,
    order: 'order by m.rule_id desc, m.id desc limit $3',
    start: Number.MAX_SAFE_INTEGER,
    ofIds: `rule_id = any ($1) and created_at > now() - interval '${RULE_DAYS} days'`,
  },
};

/** A message waits when nobody is about to send it. */
const IS_WAITING = `state = 'queued' and process is null and due_at > now() + interval '5 seconds'`;

const COUNT_UNSENT = {
  name: 'campaign_messages_unsent',
  text: `select state, ${REASON} as reason, ${IS_WAITING} and attempts > 0 as "isRetry", count(*) as count,
           min(case when ${IS_WAITING} then due_at end) as "dueAt"
         from outgoing_messages m where announcement_id = $1 and state in ('queued', 'failed', 'skipped')
         group by 1, 2, 3, ${IS_WAITING} order by count desc`,
};

const FIND_WAITS = {
  name: 'campaign_messages_waits',
  text: `select announcement_id as id, min(due_at) as "dueAt" from outgoing_messages
         where announcement_id = any ($1) and state = 'queued'
         group by 1 having bool_and(coalesce(${IS_WAITING}, false))`,
};

const countPendingOf = (kind: CampaignKind) => ({
  name: `campaign_messages_pending_of_${kind}`,
  text: `select m.${kind}_id as id, m.channel, count(distinct m.id) as count
         from pass_installations i join outgoing_messages m using (customer_card_id)
         where i.account_id = $2 and ${STATEMENTS[kind].ofIds} and ${IS_PENDING} group by 1, 2`,
});

/** Reads the messages to customers, and counts them. */
@Injectable()
export class MessageRecipients {
  constructor(private readonly pool: Pool) {}

  /**
   * Lists the messages of a campaign: of an announcement by customer, of a rule newest first.
   * @param state null: in any
   */
  list(
    kind: CampaignKind,
    id: number,
    state: RecipientState | null,
    { after, limit }: PageRange,
  ): Promise<MessageRecipient[]> {
    const { text, order, start } = STATEMENTS[kind];
    const values = [id, after?.[0] ?? start, limit];
    return query<MessageRecipient>(
      this.pool,
      state === null
        ? { name: `campaign_messages_of_${kind}`, text: `${text} ${order}`, values }
        : {
            name: `campaign_messages_of_${kind}_in`,
            text: `${text} and m.state = $4 ${order}`,
            values: [...values, state],
          },
    );
  }

  /** Counts the messages of an announcement that were not sent, by why. */
  countUnsent(announcementId: number): Promise<UnsentGroup[]> {
    return query<UnsentGroup>(this.pool, { ...COUNT_UNSENT, values: [announcementId] });
  }

  /** Finds the announcements of which all that is left waits. @returns by their ids until when the first message does */
  async findWaits(announcementIds: number[]): Promise<Map<number, Date>> {
    const values = [announcementIds];
    const rows = await query<{ id: number; dueAt: Date }>(this.pool, { ...FIND_WAITS, values });
    return new Map(rows.map(({ id, dueAt }) => [id, dueAt]));
  }

  /** Counts the messages of campaigns of a store whose arrival is pending. @returns by the ids of those that have any */
  async countPending(
    kind: CampaignKind,
    accountId: number,
    ids: number[],
  ): Promise<Map<number, PendingCounts>> {
    const rows = await query<{ id: number; channel: HolderChannel; count: number }>(this.pool, {
      ...countPendingOf(kind),
      values: [ids, accountId],
    });
    const counts = new Map<number, PendingCounts>();
    for (const { id, channel, count } of rows)
      counts.set(id, { ...counts.get(id), [channel]: count });
    return counts;
  }

  /** Counts the messages of campaigns: those of rules in the last 30 days. @returns by the ids of those that have any */
  async count(kind: CampaignKind, ids: number[]): Promise<Map<number, MessageCounts>> {
    const rows = await query<CountRow>(this.pool, {
      name: `campaign_messages_count_of_${kind}`,
      text: `select ${kind}_id as id, state, channel, count(*) as count from outgoing_messages
             where ${STATEMENTS[kind].ofIds} group by 1, 2, 3`,
      values: [ids],
    });
    const counts = new Map<number, MessageCounts>();
    for (const { id, state, channel, count } of rows) {
      const campaign = counts.get(id) ?? structuredClone(NO_MESSAGES);
      campaign[state] += count;
      if (state === 'sent' && channel !== null) campaign.sentBy[channel] += count;
      counts.set(id, campaign);
    }
    return counts;
  }
}
