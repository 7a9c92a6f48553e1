import { Field } from '#platform/http/fields.js';
import { Dto } from '#platform/http/dtos.js';
import { AsOfPageQuery } from '#platform/http/as-of.js';
import { UpdatedSinceField } from '#platform/http/page.js';
import {
  derive,
  field,
  ID,
  pick,
  TIMES,
  type FieldsOf,
  type Showing,
} from '#platform/http/resource-fields.js';
import {
  ObjectsProperty,
  OneOfProperty,
  TextProperty,
  TimestampProperty,
} from '#platform/http/response-fields.js';
import type { Card } from './card.js';
import { BARCODE_FORMATS } from './barcode.js';
import { STAMP_ICONS } from './card-appearance.js';
import { auxiliaryField, expiryField, messageField, presetField } from './card-fields.dto.js';
import { CARD_WARNINGS, findCardWarnings, type CardWarning } from './card-contrast.js';
import type { CardAttributes } from './card.events.js';
import { listHiddenFields } from './pass-row.js';
import { areStampsRecolored } from './stamp-colors.js';

const SCOPES = ['active', 'archived', 'all'] as const;

const WARNINGS: Record<CardWarning, string> = {
  stamps_look_alike:
    'Filled and empty stamps would look alike, so pictures show other colours. Choose a lighter or darker stamp_background_color.',
  text_hard_to_read: 'The text is hard to read on the card. Choose a text_color that differs more.',
};

/** What a response says besides: how the passes and pictures of the card differ from what was asked for. */
const DRAWING_WARNINGS = ['stamps_recolored', 'field_not_on_front'] as const;

const RECOLORED =
  'Some stamps would hardly be seen, so pictures show them in other colours or with an outline. Choose colours that differ more.';

function describeHiddenField(key: string): string {
  const field = key === 'header' ? 'header_text' : `${key} of auxiliary_fields`;
  return `The front of an Apple Wallet pass on a narrow phone has no room for ${field}, so that it is on the back. Shorten it.`;
}

@Dto('CardWarning')
class CardWarningJson {
  @OneOfProperty([...CARD_WARNINGS, ...DRAWING_WARNINGS], {
    example: 'text_hard_to_read',
    description: 'What it is about.',
  })
  declare readonly code: CardWarning | (typeof DRAWING_WARNINGS)[number];
  @TextProperty({
    example: WARNINGS.text_hard_to_read,
    description: 'What is wrong, and what to do.',
  })
  declare readonly message: string;
}

const colorField = (value: string, description: string) =>
  field.color({ default: value, description, response: { example: value } });
const limitField = (description: string) => field.integer({ min: 1, optional: true, description });

const FIELDS = {
  name: field.text({ description: 'The name.', response: { example: 'Coffee card' } }),
  card_color: colorField('#6B4226', 'The background of the card.'),
  text_color: colorField('#FFFFFF', 'The colour of texts.'),
  // An icon of former days stays on its cards.
  stamp_icon: field.oneOf(STAMP_ICONS as readonly string[], {
    default: 'coffee',
    description: 'The picture of a stamp.',
  }),
  stamp_color: colorField('#6B4226', 'The colour of the stamps.'),
  stamp_background_color: colorField('#FFFFFF', 'The colour behind the stamps.'),
  stamps_required: field.integer({
    min: 1,
    max: 21,
    default: 10,
    description: 'The number of stamps of a full card.',
    response: { example: 10 },
  }),
  initial_stamps: field.integer({
    min: 0,
    max: 20,
    default: 0,
    description: 'Stamps that a new customer card begins with; fewer than stamps_required.',
    response: { example: 0 },
  }),
  show_member_field: field.boolean({
    default: true,
    description: 'Whether passes show the customer’s name.',
  }),
  show_stamps_to_reward_field: field.boolean({
    default: true,
    description: 'Whether passes show how many stamps are missing to the next reward.',
  }),
  auxiliary_fields: auxiliaryField({
    default: [],
    description: 'Further fields on the front of a pass.',
  }),
  strip_type: field.oneOf(['color', 'image', 'preset'], {
    default: 'color',
    description: 'The background of the stamps: a colour, the uploaded picture, or a preset.',
  }),
  strip_color: field.color({
    optional: true,
    description:
      'The background of the strip; null: that of the card. It tints a preset; null: its own colours.',
  }),
  strip_opacity: field.number({
    min: 0,
    max: 100,
    default: 100,
    description: 'The opacity of the strip’s background over the card’s colour, in per cent.',
    response: { example: 100 },
  }),
  strip_preset: presetField({
    optional: true,
    description: 'The picture that is shown while strip_type is preset.',
  }),
  header_text: field.text({
    optional: true,
    description: 'A text at the top of the pass; null shows the name of the store.',
  }),
  expires_at: expiryField({
    optional: true,
    description: 'When the card expires; null: never.',
    response: { example: null },
  }),
  max_stamps_per_request: limitField(
    'The number of stamps that one request may add; null: up to 100.',
  ),
  max_stamps_per_day: limitField(
    'The number of stamps that one customer card may get in a day; null: no limit.',
  ),
  min_seconds_between_stamps: limitField(
    'How long after a stamping the next one is refused; null: not at all.',
  ),
  barcode_format: field.oneOf(BARCODE_FORMATS, {
    default: 'qr',
    description:
      'What kind of barcode passes and the web card show. Till scanners without a camera read code128 only.',
  }),
  stamp_message: messageField(
    'stampMessage',
    'Tells customers of new stamps',
    '{missing} more to your free coffee',
  ),
  reward_message: messageField(
    'rewardMessage',
    'Tells customers that a reward is ready',
    'Your {reward} is waiting for you',
  ),
  redemption_message: messageField(
    'redemptionMessage',
    'Tells customers what they redeemed',
    'Enjoy your {reward}!',
  ),
} satisfies FieldsOf<CardAttributes>;

const RESPONSE = {
  id: ID,
  ...pick(FIELDS, 'name', 'card_color', 'text_color', 'stamp_icon', 'stamp_color'),
  ...pick(FIELDS, 'stamp_background_color', 'stamps_required', 'initial_stamps'),
  ...pick(FIELDS, 'show_member_field', 'show_stamps_to_reward_field', 'auxiliary_fields'),
  ...pick(FIELDS, 'strip_type', 'strip_color', 'strip_opacity', 'strip_preset', 'header_text'),
  ...pick(FIELDS, 'expires_at'),
  archived_at: field.response<string | null>(
    TimestampProperty({
      nullable: true,
      example: null,
      description: 'When the card was archived; null while it is active.',
    }),
  ),
  rewards_count: field.integer({ description: 'The number of rewards of the card.' }),
  customer_cards_count: field.integer({
    description: 'The number of customers who have the card.',
  }),
  ...pick(FIELDS, 'max_stamps_per_request', 'max_stamps_per_day', 'min_seconds_between_stamps'),
  ...pick(FIELDS, 'barcode_format', 'stamp_message', 'reward_message', 'redemption_message'),
  warnings: field.response<CardWarningJson[]>(
    ObjectsProperty(() => CardWarningJson, {
      description:
        'What people cannot see or read on the card, or see in another way than asked for; empty if there is nothing of it.',
    }),
  ),
  ...TIMES,
} satisfies Showing<typeof FIELDS>;

@Dto('CardInput', {
  wrapper: 'card',
  example: { name: 'Coffee card', stamps_required: 10, stamp_icon: 'coffee' },
})
export class CreateCardDto extends derive.input(FIELDS) {}

@Dto('CardChanges', {
  wrapper: 'card',
  example: { name: 'Coffee and cake', header_text: 'Corner Café' },
})
export class UpdateCardDto extends derive.changes(FIELDS) {}

@Dto('CardListQuery')
export class CardListQuery extends AsOfPageQuery {
  @Field(
    {
      schema: { type: 'string', default: undefined },
      convert: (value) => SCOPES.find((scope) => scope === value) ?? 'active',
    },
    { default: 'active', description: 'active, archived or all; blank or anything else: active' },
  )
  declare readonly scope: (typeof SCOPES)[number];

  @UpdatedSinceField() declare readonly updated_since: Date | null;
}

export type CardFilter = { scope: CardListQuery['scope']; updatedSince: Date | null };

@Dto('Card')
export class CardJson extends derive.response(RESPONSE) {}

export const toCardAttributes = derive.toAttributes(FIELDS);

const renderCard = derive.toJsonWith(RESPONSE);

function listWarnings(card: Card): CardWarningJson[] {
  const codes = findCardWarnings(card);
  const isRecolored = !codes.includes('stamps_look_alike') && areStampsRecolored(card);
  return [
    ...codes.map((code) => ({ code, message: WARNINGS[code] })),
    ...(isRecolored ? [{ code: 'stamps_recolored' as const, message: RECOLORED }] : []),
    ...listHiddenFields(card).map((key) => ({
      code: 'field_not_on_front' as const,
      message: describeHiddenField(key),
    })),
  ];
}

export function toCardJson(
  card: Card,
  counts: { rewards: number; customerCards: number },
): CardJson {
  return renderCard(card, {
    auxiliaryFields: card.auxiliaryFields.map(({ key, label, value }) => ({ key, label, value })),
    rewardsCount: counts.rewards,
    customerCardsCount: counts.customerCards,
    warnings: listWarnings(card),
  });
}
