import { OneOfField } from '#platform/http/fields.js';
import { Dto } from '#platform/http/dtos.js';
import { PageQuery } from '#platform/http/page.js';
import {
  IntegerProperty,
  ObjectProperty,
  OneOfProperty,
  TextProperty,
  TimestampProperty,
} from '#platform/http/response-fields.js';
import {
  CHANNELS,
  MESSAGE_REASONS,
  type HolderChannel,
  type MessageReason,
} from './message-channel.js';
import { ByChannelJson } from './message-fields.dto.js';
import {
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

@Dto('MessageRecipient')
export class MessageRecipientJson {
  @IntegerProperty({ description: 'The id of the message to this customer.' })
  declare readonly id: number;
  @IntegerProperty({ nullable: true, description: 'The announcement; null for a rule.' })
  declare readonly announcement_id: number | null;
  @IntegerProperty({ nullable: true, example: null, description: 'The rule, else null.' })
  declare readonly rule_id: number | null;
  @IntegerProperty({ description: 'The customer.' }) declare readonly customer_id: number;
  @TextProperty({
    nullable: true,
    example: 'Anna Schmidt',
    description: 'Their present name; null once they are erased.',
  })
  declare readonly customer_name: string | null;
  @IntegerProperty({
    nullable: true,
    description: 'The card whose pass shows it, or whose page it leads to.',
  })
  declare readonly customer_card_id: number | null;
  @OneOfProperty(RECIPIENT_STATES, { example: 'sent', description: 'What became of it.' })
  declare readonly state: RecipientState;
  @OneOfProperty(CHANNELS, {
    nullable: true,
    example: 'wallet',
    description: 'The channel; null when none reaches them.',
  })
  declare readonly channel: HolderChannel | null;
  @OneOfProperty(MESSAGE_REASONS, {
    nullable: true,
    example: null,
    description:
      'Why it was not sent, or waits: a message beyond a limit of a day waits up to two days. silent: it is on the pass without a notification, because Google shows three of a pass in 24 hours.',
  })
  declare readonly reason: MessageReason | null;
  @TimestampProperty({ nullable: true, description: 'When it is sent, or tried again.' })
  declare readonly due_at: string | null;
  @TimestampProperty({ description: 'When it was addressed.' }) declare readonly created_at: string;
  @TimestampProperty({ nullable: true, description: 'When it came to its outcome.' })
  declare readonly finished_at: string | null;
}

@Dto('MessageCounts')
export class MessageCountsJson {
  @IntegerProperty({ example: 120, description: 'The customers to whom it was addressed so far.' })
  declare readonly people: number;
  @IntegerProperty({ example: 0, description: 'To be sent.' }) declare readonly queued: number;
  @IntegerProperty({ example: 87, description: 'Sent.' }) declare readonly sent: number;
  @IntegerProperty({ example: 1, description: 'Refused by a server, or given up.' })
  declare readonly failed: number;
  @IntegerProperty({ example: 32, description: 'Not sent; the recipients have the reasons.' })
  declare readonly skipped: number;
  @ObjectProperty(() => ByChannelJson, { description: 'How many were sent by each channel.' })
  declare readonly sent_by: ByChannelJson;
}

export function toMessageRecipientJson(one: MessageRecipient): MessageRecipientJson {
  return {
    id: one.id,
    announcement_id: one.announcementId,
    rule_id: one.ruleId,
    customer_id: one.customerId,
    customer_name: one.customerName,
    customer_card_id: one.customerCardId,
    state: one.state,
    channel: one.channel,
    reason: one.reason,
    due_at: one.dueAt?.toISOString() ?? null,
    created_at: one.createdAt.toISOString(),
    finished_at: one.finishedAt?.toISOString() ?? null,
  };
}

export function toMessageCountsJson({
  queued,
  sent,
  failed,
  skipped,
  sentBy,
}: MessageCounts): MessageCountsJson {
  return {
    people: queued + sent + failed + skipped,
    queued,
    sent,
    failed,
    skipped,
    sent_by: {
      wallet: sentBy.wallet,
      web_push: sentBy.web_push,
      email: sentBy.email,
      sms: sentBy.sms,
    },
  };
}
