import { IntegerField } from '#platform/http/fields.js';
import { Dto } from '#platform/http/dtos.js';
import { PageQuery, type CursorKey } from '#platform/http/page.js';
import { derive, field, ID, TIMES, type FieldsOf } from '#platform/http/resource-fields.js';
import {
  ObjectsProperty,
  TextProperty,
  TimestampProperty,
} from '#platform/http/response-fields.js';
import { CHANNELS, type HolderChannel, type Reach } from '#outbound/messages/message-channel.js';
import { contentFields, REACH, toReachJson } from './message-fields.dto.js';
import { COUNTS, CUSTOMER, toMessageCountsJson } from './message-recipient.dto.js';
import type { MessageCounts } from './message-recipient.js';
import { RULE_KINDS, type MessageContent, type MessageRule, type Occasion } from './campaign.js';

const MAX_DAYS = 90;

const EXAMPLE = { title: 'One more stamp', text: 'Your next coffee brings you to your reward.' };

const KIND = {
  kind: field.oneOf(RULE_KINDS, {
    description:
      'stamps_away: a stamp brought a card within threshold stamps of a reward; reward_unused: a reward was ready for threshold days; birthday: it is their birthday; inactive: nothing happened to their cards for threshold days.',
    response: { example: 'stamps_away' },
  }),
};

const OCCASION = {
  threshold: field.integer({
    min: 1,
    max: 730,
    optional: true,
    example: 1,
    description:
      'Stamps (1 to 10) for stamps_away, days for reward_unused (1 to 365) and inactive (1 to 730), null for birthday.',
  }),
  card_id: field.integer({
    min: 1,
    optional: true,
    example: null,
    description: 'Only about this card; null: about whichever.',
  }),
} satisfies FieldsOf<Omit<Occasion, 'kind'>>;

const CONTENT = contentFields(EXAMPLE) satisfies FieldsOf<MessageContent>;

const FIELDS = {
  ...OCCASION,
  ...CONTENT,
  enabled: field.boolean({
    default: false,
    description: 'Whether it sends. It sends for what happens from then on.',
    response: { example: false },
  }),
};

const RESPONSE = {
  id: ID,
  account_id: field.integer({ description: 'The store.' }),
  ...KIND,
  ...FIELDS,
  ...COUNTS,
  ...TIMES,
};

@Dto('MessageRuleInput', { example: { kind: 'stamps_away', threshold: 1, ...EXAMPLE } })
export class CreateMessageRuleDto extends derive.input({ ...KIND, ...FIELDS }) {}

@Dto('MessageRuleChanges', { example: { enabled: true } })
export class UpdateMessageRuleDto extends derive.changes(FIELDS) {}

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
export class MessageRuleJson extends derive.response(RESPONSE) {}

const DAY = {
  day: field.response<string>(
    TextProperty({ format: 'date', example: '2026-03-01', description: 'The day at the store.' }),
  ),
  people: field.integer({ example: 4, description: 'The messages that would have been due.' }),
};

@Dto('MessageRuleDay')
class RuleDayJson extends derive.response(DAY) {}

@Dto('MessageRuleReach')
export class RuleReachJson extends derive.response({
  ...REACH,
  days: field.integer({ example: 30, description: 'The days that were looked at.' }),
  by_day: field.response<RuleDayJson[]>(
    ObjectsProperty(() => RuleDayJson, {
      description: 'The days on which somebody would have got one, oldest first.',
    }),
  ),
}) {}

const REACHED = {
  ...CUSTOMER,
  customer_card_id: field.integer({
    optional: true,
    description: 'The card that it is about, if any.',
  }),
  at: field.response<string>(
    TimestampProperty({ description: 'When it would have been due, but for quiet hours.' }),
  ),
  channel: field.oneOf(CHANNELS, {
    optional: true,
    example: 'wallet',
    description: 'The channel that would reach them today; null: none.',
  }),
};

@Dto('MessageRuleOccasion')
export class RuleOccasionJson extends derive.response(REACHED) {}

/** What a rule would have done. @property customers who would have got one or several @property byDay oldest first */
export type RuleReach = Reach & {
  days: number;
  customers: number;
  byDay: { day: string; people: number }[];
};

/** @property key the order of the list, which falls */
export type RuleOccasion = {
  key: CursorKey;
  customerId: number;
  customerName: string | null;
  customerCardId: number | null;
  at: Date;
  channel: HolderChannel | null;
};

const toOccasion = derive.toAttributes({ ...KIND, ...OCCASION });
const toContent = derive.toAttributes(CONTENT);

/** Converts the fields that the request contains, and no others. */
export function toRuleChanges({ enabled, ...input }: UpdateMessageRuleDto) {
  return {
    ...toContent(input),
    trigger: toOccasion(input),
    ...(enabled !== undefined && { state: toRuleState(enabled) }),
  };
}

export function toRuleAttributes(input: CreateMessageRuleDto) {
  const { enabled } = input;
  return { ...toContent(input), trigger: toOccasion(input), state: toRuleState(enabled) };
}

function toRuleState(enabled: boolean): 'enabled' | 'disabled' {
  return enabled ? 'enabled' : 'disabled';
}

const renderRule = derive.toJsonWith(RESPONSE);

export function toMessageRuleJson(rule: MessageRule, counts: MessageCounts): MessageRuleJson {
  return renderRule(
    { ...rule, ...rule.trigger },
    {
      enabled: rule.state === 'enabled',
      counts: toMessageCountsJson(counts),
      createdAt: rule.createdAt.toISOString(),
      updatedAt: rule.updatedAt.toISOString(),
    },
  );
}

const toRuleDayJson = derive.toJson(DAY);

export function toRuleReachJson({ days, byDay, ...reach }: RuleReach): RuleReachJson {
  return { ...toReachJson(reach), days, by_day: byDay.map(toRuleDayJson) };
}

const renderOccasion = derive.toJsonWith(REACHED);

export function toRuleOccasionJson(occasion: RuleOccasion): RuleOccasionJson {
  return renderOccasion(occasion, { at: occasion.at.toISOString() });
}
