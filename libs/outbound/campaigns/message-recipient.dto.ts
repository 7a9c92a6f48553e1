import { OneOfField } from '#platform/http/fields.js';
import { Dto } from '#platform/http/dtos.js';
import { PageQuery } from '#platform/http/page.js';
import { derive, field } from '#platform/http/resource-fields.js';
import { ObjectProperty, TimestampProperty } from '#platform/http/response-fields.js';
import { CHANNELS, MESSAGE_REASONS } from '#outbound/messages/message-channel.js';
import { ByChannelJson, optionalTimeField, toByChannelJson } from './message-fields.dto.js';
import {
  ARRIVALS,
  RECIPIENT_STATES,
  type MessageCounts,
  type MessageRecipient,
  type RecipientState,
} from './message-recipient.js';

@Dto('MessageRecipientListQuery')
export class RecipientListQuery extends PageQuery {
  @OneOfField(RECIPIENT_STATES, { optional: true, description: 'Only those in this state.' })
  declare readonly state: RecipientState | null;
}

/** Tells whose a message is, or would be. */
export const CUSTOMER = {
  customer_id: field.integer({ description: 'The customer.' }),
  customer_name: field.text({
    optional: true,
    example: 'Anna Schmidt',
    description: 'Their present name; null for somebody who is no longer a customer.',
  }),
};

const RECIPIENT = {
  id: field.integer({ description: 'The id of the message to this customer.' }),
  announcement_id: field.integer({
    optional: true,
    description: 'The announcement; null for a rule.',
  }),
  rule_id: field.integer({ optional: true, example: null, description: 'The rule, else null.' }),
  ...CUSTOMER,
  customer_card_id: field.integer({
    optional: true,
    description: 'The card whose pass shows it, or whose page it leads to.',
  }),
  state: field.oneOf(RECIPIENT_STATES, { example: 'sent', description: 'What became of it.' }),
  channel: field.oneOf(CHANNELS, {
    optional: true,
    example: 'wallet',
    description: 'The channel; null when none reaches them.',
  }),
  reason: field.oneOf(MESSAGE_REASONS, {
    optional: true,
    example: null,
    description:
      'Why it was not sent, or waits: a message beyond a limit of a day waits up to two days. silent: it is on the pass without a notification, because Google shows three of a pass in 24 hours.',
  }),
  arrival: field.oneOf(ARRIVALS, {
    optional: true,
    example: null,
    description:
      'What was reported after it was sent: of an SMS by the provider, and pending while the server of Apple, Google or the browser has not accepted the update of the pass; null: nothing.',
  }),
  due_at: optionalTimeField('When it is sent, or tried again.'),
  created_at: field.response<string>(TimestampProperty({ description: 'When it was addressed.' })),
  finished_at: optionalTimeField('When it came to its outcome.'),
};

@Dto('MessageRecipient')
export class MessageRecipientJson extends derive.response(RECIPIENT) {}

@Dto('MessageCounts')
export class MessageCountsJson extends derive.response({
  people: field.integer({
    example: 120,
    description: 'The customers to whom it was addressed so far.',
  }),
  queued: field.integer({ example: 0, description: 'To be sent.' }),
  sent: field.integer({ example: 87, description: 'Sent.' }),
  failed: field.integer({ example: 1, description: 'Refused by a server, or given up.' }),
  skipped: field.integer({
    example: 32,
    description: 'Not sent; the recipients have the reasons.',
  }),
  sent_by: field.response<ByChannelJson>(
    ObjectProperty(() => ByChannelJson, { description: 'How many were sent by each channel.' }),
  ),
}) {}

export const COUNTS = {
  counts: field.response<MessageCountsJson>(
    ObjectProperty(() => MessageCountsJson, { description: 'What became of its messages.' }),
  ),
};

const renderRecipient = derive.toJsonWith(RECIPIENT);

export function toMessageRecipientJson(recipient: MessageRecipient): MessageRecipientJson {
  return renderRecipient(recipient, {
    dueAt: recipient.dueAt?.toISOString() ?? null,
    createdAt: recipient.createdAt.toISOString(),
    finishedAt: recipient.finishedAt?.toISOString() ?? null,
  });
}

export function toMessageCountsJson({ sentBy, ...counts }: MessageCounts): MessageCountsJson {
  const { queued, sent, failed, skipped } = counts;
  const people = queued + sent + failed + skipped;
  return { people, queued, sent, failed, skipped, sent_by: toByChannelJson(sentBy) };
}
