import { BooleanField, IntegerField, OneOfField } from '#platform/http/fields.js';
import { Dto } from '#platform/http/dtos.js';
import { PageQuery, type CursorKey } from '#platform/http/page.js';
import {
  BooleanProperty,
  IntegerProperty,
  ObjectProperty,
  ObjectsProperty,
  OneOfProperty,
  TextProperty,
  TextsProperty,
  TimestampProperty,
} from '#platform/http/response-fields.js';
import { CHANNELS, type HolderChannel, type Reach } from './message-channel.js';
import {
  ChannelsField,
  DESCRIPTIONS,
  MessageTextField,
  ReachJson,
  TitleField,
  toReachJson,
} from './message-fields.dto.js';
import { MessageCountsJson, toMessageCountsJson } from './message-recipient.dto.js';
import type { MessageCounts } from './message-recipient.js';
import {
  RULE_KINDS,
  type MessageRule,
  type RuleAttributes,
  type RuleKind,
} from './message-rule.js';

const MAX_DAYS = 90;

const WORDS = {
  kind: 'stamps_away: a stamp brought a card within threshold stamps of a reward; reward_unused: a reward was ready for threshold days; birthday: it is their birthday; inactive: nothing happened to their cards for threshold days.',
  threshold:
    'Stamps (1 to 10) for stamps_away, days for reward_unused (1 to 365) and inactive (1 to 730), null for birthday.',
  card_id: 'Only about this card; null: about whichever.',
  enabled: 'Whether it sends. It sends for what happens from then on.',
};
const TITLE = { example: 'One more stamp' };
const TEXT = { example: 'Your next coffee brings you to your reward.' };

@Dto('MessageRuleInput', {
  example: {
    kind: 'stamps_away',
    threshold: 1,
    title: 'One more stamp',
    text: 'Your next coffee brings you to your reward.',
  },
})
export class CreateMessageRuleDto {
  @OneOfField(RULE_KINDS, { description: WORDS.kind }) declare readonly kind: RuleKind;
  @IntegerField({ min: 1, max: 730, optional: true, description: WORDS.threshold, example: 1 })
  declare readonly threshold: number | null;
  @IntegerField({ min: 1, optional: true, description: WORDS.card_id, example: null })
  declare readonly card_id: number | null;
  @TitleField(TITLE) declare readonly title: string;
  @MessageTextField(TEXT) declare readonly text: string;
  @ChannelsField({ default: [...CHANNELS] }) declare readonly channels: HolderChannel[];
  @BooleanField({ default: false, description: WORDS.enabled }) declare readonly enabled: boolean;
}

@Dto('MessageRuleChanges', { example: { enabled: true } })
export class UpdateMessageRuleDto {
  @IntegerField({ min: 1, max: 730, clearable: true, description: WORDS.threshold, example: 1 })
  declare readonly threshold?: number | null;
  @IntegerField({ min: 1, clearable: true, description: WORDS.card_id, example: null })
  declare readonly card_id?: number | null;
  @TitleField({ ...TITLE, omittable: true }) declare readonly title?: string;
  @MessageTextField({ ...TEXT, omittable: true }) declare readonly text?: string;
  @ChannelsField({ omittable: true }) declare readonly channels?: HolderChannel[];
  @BooleanField({ omittable: true, description: WORDS.enabled }) declare readonly enabled?: boolean;
}

const DAYS = {
  min: 1,
  max: MAX_DAYS,
  default: 30,
  description: 'How many days back, up to now.',
};

@Dto('MessageRuleReachQuery')
export class RuleReachQuery {
  @IntegerField(DAYS) declare readonly days: number;
}

@Dto('MessageRuleReachListQuery')
export class RuleReachListQuery extends PageQuery {
  @IntegerField(DAYS) declare readonly days: number;
}

@Dto('MessageRule')
export class MessageRuleJson {
  @IntegerProperty({ description: 'The id.' }) declare readonly id: number;
  @IntegerProperty({ description: 'The store.' }) declare readonly account_id: number;
  @OneOfProperty(RULE_KINDS, { example: 'stamps_away', description: WORDS.kind })
  declare readonly kind: RuleKind;
  @IntegerProperty({ nullable: true, example: 1, description: WORDS.threshold })
  declare readonly threshold: number | null;
  @IntegerProperty({ nullable: true, example: null, description: WORDS.card_id })
  declare readonly card_id: number | null;
  @TextProperty({ ...TITLE, description: DESCRIPTIONS.title }) declare readonly title: string;
  @TextProperty({ ...TEXT, description: DESCRIPTIONS.text }) declare readonly text: string;
  @TextsProperty(
    { enum: CHANNELS },
    { example: ['wallet', 'email'], description: DESCRIPTIONS.channels },
  )
  declare readonly channels: HolderChannel[];
  @BooleanProperty({ example: false, description: WORDS.enabled })
  declare readonly enabled: boolean;
  @ObjectProperty(() => MessageCountsJson, { description: 'What became of its messages.' })
  declare readonly counts: MessageCountsJson;
  @TimestampProperty({ description: 'When it was created.' }) declare readonly created_at: string;
  @TimestampProperty({ description: 'When it was last changed.' })
  declare readonly updated_at: string;
}

@Dto('MessageRuleDay')
class RuleDayJson {
  @TextProperty({ format: 'date', example: '2026-03-01', description: 'The day at the store.' })
  declare readonly day: string;
  @IntegerProperty({ example: 4, description: 'The messages that would have been due.' })
  declare readonly people: number;
}

@Dto('MessageRuleReach')
export class RuleReachJson extends ReachJson {
  @IntegerProperty({ example: 30, description: 'The days that were looked at.' })
  declare readonly days: number;
  @ObjectsProperty(() => RuleDayJson, {
    description: 'The days on which somebody would have got one, oldest first.',
  })
  declare readonly by_day: RuleDayJson[];
}

@Dto('MessageRuleOccasion')
export class RuleOccasionJson {
  @IntegerProperty({ description: 'The customer.' }) declare readonly customer_id: number;
  @TextProperty({
    nullable: true,
    example: 'Anna Schmidt',
    description: 'Their present name; null once they are erased.',
  })
  declare readonly customer_name: string | null;
  @IntegerProperty({ nullable: true, description: 'The card that it is about, if any.' })
  declare readonly customer_card_id: number | null;
  @TimestampProperty({ description: 'When it would have been due, but for quiet hours.' })
  declare readonly at: string;
  @OneOfProperty(CHANNELS, {
    nullable: true,
    example: 'wallet',
    description: 'The channel that would reach them today; null: none.',
  })
  declare readonly channel: HolderChannel | null;
}

/** What a rule would have done. @property byDay oldest first */
export type RuleReach = Reach & { days: number; byDay: { day: string; people: number }[] };

/** @property key the order of the list, which falls */
export type RuleOccasion = {
  key: CursorKey;
  customerId: number;
  customerName: string | null;
  customerCardId: number | null;
  at: Date;
  channel: HolderChannel | null;
};

export function toRuleAttributes(input: CreateMessageRuleDto): RuleAttributes {
  const { title, text, channels, threshold, card_id: cardId, enabled } = input;
  return { title, text, channels, threshold, cardId, enabled };
}

/** Converts the fields that the request contains, and no others. */
export function toRuleChanges(input: UpdateMessageRuleDto): Partial<RuleAttributes> {
  const { title, text, channels, threshold, card_id, enabled } = input;
  return {
    ...(title !== undefined && { title }),
    ...(text !== undefined && { text }),
    ...(channels !== undefined && { channels }),
    ...(threshold !== undefined && { threshold }),
    ...(card_id !== undefined && { cardId: card_id }),
    ...(enabled !== undefined && { enabled }),
  };
}

export function toMessageRuleJson(rule: MessageRule, counts: MessageCounts): MessageRuleJson {
  return {
    id: rule.id,
    account_id: rule.accountId,
    kind: rule.kind,
    threshold: rule.threshold,
    card_id: rule.cardId,
    title: rule.title,
    text: rule.text,
    channels: rule.channels,
    enabled: rule.enabled,
    counts: toMessageCountsJson(counts),
    created_at: rule.createdAt.toISOString(),
    updated_at: rule.updatedAt.toISOString(),
  };
}

export function toRuleReachJson({ days, byDay, ...reach }: RuleReach): RuleReachJson {
  return {
    ...toReachJson(reach),
    days,
    by_day: byDay.map(({ day, people }) => ({ day, people })),
  };
}

export function toRuleOccasionJson(one: RuleOccasion): RuleOccasionJson {
  return {
    customer_id: one.customerId,
    customer_name: one.customerName,
    customer_card_id: one.customerCardId,
    at: one.at.toISOString(),
    channel: one.channel,
  };
}
