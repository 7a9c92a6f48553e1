import type pg from 'pg';
import type { HolderChannel, MessageReason } from '#outbound/messages/message-channel.js';

/** A message to be enqueued. Without a channel it is not sent, for a reason. */
export type NewMessage = {
  accountId: number;
  customerId: number;
  customerCardId: number | null;
  source: { announcementId: number } | { ruleId: number; occasion: string };
  /** Null: that of the announcement. */
  content: { title: string; text: string } | null;
  channel: HolderChannel | null;
  reason: MessageReason | null;
  dueAt: Date;
};

const INSERT = {
  name: 'campaign_messages_insert',
  text: `
    insert into outgoing_messages (kind, account_id, announcement_id, rule_id, occasion, customer_id, customer_card_id,
      title, text, state, channel, reason, due_at, finished_at, give_up_at)
    select 'campaign', m."accountId", (m.source ->> 'announcementId')::bigint, (m.source ->> 'ruleId')::bigint,
      m.source ->> 'occasion', m."customerId", m."customerCardId", m.content ->> 'title', m.content ->> 'text',
      case when m.channel is null then 'skipped' else 'queued' end, m.channel, m.reason,
      case when m.channel is null then null else m."dueAt" end,
      case when m.channel is null then now() end, now() + interval '2 days'
    from jsonb_to_recordset($1) as m ("accountId" bigint, source jsonb, "customerId" bigint, "customerCardId" bigint,
      content jsonb, channel text, reason text, "dueAt" timestamptz)
    on conflict do nothing`,
};

/** Enqueues messages, in the caller's transaction. One that is there already, for the same occasion, is not repeated. */
export async function insertMessages(client: pg.ClientBase, messages: NewMessage[]): Promise<void> {
  if (messages.length > 0) await client.query({ ...INSERT, values: [JSON.stringify(messages)] });
}
