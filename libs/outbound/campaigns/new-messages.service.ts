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
    select 'campaign', m.account_id, m.announcement_id, m.rule_id, m.occasion, m.customer_id, m.customer_card_id, m.title,
      m.text, case when m.channel is null then 'skipped' else 'queued' end, m.channel, m.reason,
      case when m.channel is null then null else m.due_at end,
      case when m.channel is null then now() end, now() + interval '2 days'
    from jsonb_to_recordset($1) as m (account_id bigint, announcement_id bigint, rule_id bigint, occasion text,
      customer_id bigint, customer_card_id bigint, title text, text text, channel text, reason text,
      due_at timestamptz)
    on conflict do nothing`,
};

/** Enqueues messages, in the caller's transaction. One that is there already, for the same occasion, is not repeated. */
export async function insertMessages(client: pg.ClientBase, messages: NewMessage[]): Promise<void> {
  if (messages.length === 0) return;
  const rows = messages.map((message) => ({
    account_id: message.accountId,
    announcement_id: 'announcementId' in message.source ? message.source.announcementId : null,
    rule_id: 'ruleId' in message.source ? message.source.ruleId : null,
    occasion: 'ruleId' in message.source ? message.source.occasion : null,
    customer_id: message.customerId,
    customer_card_id: message.customerCardId,
    title: message.content?.title ?? null,
    text: message.content?.text ?? null,
    channel: message.channel,
    reason: message.reason,
    due_at: message.dueAt.toISOString(),
  }));
  await client.query({ ...INSERT, values: [JSON.stringify(rows)] });
}
