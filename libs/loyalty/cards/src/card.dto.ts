import {
  BooleanField,
  ColorField,
  Field,
  IntegerField,
  NumberField,
  OneOfField,
  TextField,
} from '#http/fields.js';
import { Dto } from '#http/dtos.js';
import { AsOfPageQuery } from '#http/as-of.js';
import { UpdatedSinceField } from '#http/page.js';
import {
  BooleanProperty,
  IntegerProperty,
  NumberProperty,
  ObjectsProperty,
  OneOfProperty,
  TextProperty,
  TimestampProperty,
} from '#http/response-fields.js';
import type { Card } from './card.js';
import { BARCODE_FORMATS } from './barcode.js';
import { STAMP_ICONS, type StampIcon } from './card-appearance.js';
import {
  AUXILIARY_DESCRIPTIONS,
  AuxiliaryFieldsField,
  ExpiryField,
  MessageField,
  PresetField,
  describeMessage,
} from './card-fields.dto.js';
import { CARD_WARNINGS, findCardWarnings, type CardWarning } from './card-contrast.js';
import type { AuxiliaryField, BarcodeFormat, CardAttributes } from './card.events.js';

/** Describes the fields that several classes have. */
const DESCRIPTIONS = {
  name: 'The name.',
  card_color: 'The background of the card.',
  text_color: 'The colour of texts.',
  stamp_icon: 'The picture of a stamp.',
  stamp_color: 'The colour of the stamps.',
  stamp_background_color: 'The colour behind the stamps.',
  stamps_required: 'The number of stamps of a full card.',
  initial_stamps: 'Stamps that a new customer card begins with; fewer than stamps_required.',
  show_member_field: 'Whether passes show the customer’s name.',
  show_stamps_to_reward_field:
    'Whether passes show how many stamps are missing to the next reward.',
  strip_type: 'The background of the stamps: a colour, the uploaded picture, or a preset.',
  strip_color: 'The background of the strip; null: that of the card.',
  strip_opacity: 'The opacity of the strip’s background over the card’s colour, in per cent.',
  header_text: 'A text at the top of the pass; null shows the name of the store.',
  max_stamps_per_request: 'The number of stamps that one request may add; null: up to 100.',
  max_stamps_per_day:
    'The number of stamps that one customer card may get in a day; null: no limit.',
  min_seconds_between_stamps:
    'How long after a stamping the next one is refused; null: not at all.',
  barcode_format:
    'What kind of barcode passes and the web card show. Till scanners without a camera read code128 only.',
  stamp_message: describeMessage('stampMessage', 'Tells customers of new stamps'),
  reward_message: describeMessage('rewardMessage', 'Tells customers that a reward is ready'),
  redemption_message: describeMessage('redemptionMessage', 'Tells customers what they redeemed'),
};

const STRIP_TYPES = ['color', 'image', 'preset'] as const;
const SCOPES = ['active', 'archived', 'all'] as const;

const STAMPS_REQUIRED = { min: 1, max: 21 };
const INITIAL_STAMPS = { min: 0, max: 20 };
const OPACITY = { min: 0, max: 100 };
const LIMIT = { min: 1 };

type StripType = (typeof STRIP_TYPES)[number];

@Dto('CardInput', {
  wrapper: 'card',
  example: { name: 'Coffee card', stamps_required: 10, stamp_icon: 'coffee' },
})
export class CreateCardDto {
  @TextField({ description: DESCRIPTIONS.name }) declare readonly name: string;
  @ColorField({ default: '#6B4226', description: DESCRIPTIONS.card_color })
  declare readonly card_color: string;
  @ColorField({ default: '#FFFFFF', description: DESCRIPTIONS.text_color })
  declare readonly text_color: string;
  @OneOfField(STAMP_ICONS, { default: 'coffee', description: DESCRIPTIONS.stamp_icon })
  declare readonly stamp_icon: StampIcon;
  @ColorField({ default: '#6B4226', description: DESCRIPTIONS.stamp_color })
  declare readonly stamp_color: string;
  @ColorField({ default: '#FFFFFF', description: DESCRIPTIONS.stamp_background_color })
  declare readonly stamp_background_color: string;
  @IntegerField({ ...STAMPS_REQUIRED, default: 10, description: DESCRIPTIONS.stamps_required })
  declare readonly stamps_required: number;
  @IntegerField({ ...INITIAL_STAMPS, default: 0, description: DESCRIPTIONS.initial_stamps })
  declare readonly initial_stamps: number;
  @BooleanField({ default: true, description: DESCRIPTIONS.show_member_field })
  declare readonly show_member_field: boolean;
  @BooleanField({ default: true, description: DESCRIPTIONS.show_stamps_to_reward_field })
  declare readonly show_stamps_to_reward_field: boolean;
  @AuxiliaryFieldsField({ default: [] }) declare readonly auxiliary_fields: AuxiliaryField[];
  @OneOfField(STRIP_TYPES, { default: 'color', description: DESCRIPTIONS.strip_type })
  declare readonly strip_type: StripType;
  @ColorField({ optional: true, description: DESCRIPTIONS.strip_color })
  declare readonly strip_color: string | null;
  @NumberField({ ...OPACITY, default: 100, description: DESCRIPTIONS.strip_opacity })
  declare readonly strip_opacity: number;
  @PresetField({ optional: true }) declare readonly strip_preset: string | null;
  @TextField({ optional: true, description: DESCRIPTIONS.header_text })
  declare readonly header_text: string | null;
  @ExpiryField({ optional: true }) declare readonly expires_at: string | null;
  @IntegerField({ ...LIMIT, optional: true, description: DESCRIPTIONS.max_stamps_per_request })
  declare readonly max_stamps_per_request: number | null;
  @IntegerField({ ...LIMIT, optional: true, description: DESCRIPTIONS.max_stamps_per_day })
  declare readonly max_stamps_per_day: number | null;
  @IntegerField({ ...LIMIT, optional: true, description: DESCRIPTIONS.min_seconds_between_stamps })
  declare readonly min_seconds_between_stamps: number | null;
  @OneOfField(BARCODE_FORMATS, { default: 'qr', description: DESCRIPTIONS.barcode_format })
  declare readonly barcode_format: BarcodeFormat;
  @MessageField('stampMessage', { optional: true, description: DESCRIPTIONS.stamp_message })
  declare readonly stamp_message: string | null;
  @MessageField('rewardMessage', { optional: true, description: DESCRIPTIONS.reward_message })
  declare readonly reward_message: string | null;
  @MessageField('redemptionMessage', {
    optional: true,
    description: DESCRIPTIONS.redemption_message,
  })
  declare readonly redemption_message: string | null;
}

@Dto('CardChanges', {
  wrapper: 'card',
  example: { name: 'Coffee and cake', header_text: 'Corner Café' },
})
export class UpdateCardDto {
  @TextField({ omittable: true, description: DESCRIPTIONS.name }) declare readonly name?: string;
  @ColorField({ omittable: true, description: DESCRIPTIONS.card_color })
  declare readonly card_color?: string;
  @ColorField({ omittable: true, description: DESCRIPTIONS.text_color })
  declare readonly text_color?: string;
  @OneOfField(STAMP_ICONS, { omittable: true, description: DESCRIPTIONS.stamp_icon })
  declare readonly stamp_icon?: StampIcon;
  @ColorField({ omittable: true, description: DESCRIPTIONS.stamp_color })
  declare readonly stamp_color?: string;
  @ColorField({ omittable: true, description: DESCRIPTIONS.stamp_background_color })
  declare readonly stamp_background_color?: string;
  @IntegerField({ ...STAMPS_REQUIRED, omittable: true, description: DESCRIPTIONS.stamps_required })
  declare readonly stamps_required?: number;
  @IntegerField({ ...INITIAL_STAMPS, omittable: true, description: DESCRIPTIONS.initial_stamps })
  declare readonly initial_stamps?: number;
  @BooleanField({ omittable: true, description: DESCRIPTIONS.show_member_field })
  declare readonly show_member_field?: boolean;
  @BooleanField({ omittable: true, description: DESCRIPTIONS.show_stamps_to_reward_field })
  declare readonly show_stamps_to_reward_field?: boolean;
  @AuxiliaryFieldsField({ omittable: true }) declare readonly auxiliary_fields?: AuxiliaryField[];
  @OneOfField(STRIP_TYPES, { omittable: true, description: DESCRIPTIONS.strip_type })
  declare readonly strip_type?: StripType;
  @ColorField({ clearable: true, description: DESCRIPTIONS.strip_color })
  declare readonly strip_color?: string | null;
  @NumberField({ ...OPACITY, omittable: true, description: DESCRIPTIONS.strip_opacity })
  declare readonly strip_opacity?: number;
  @PresetField({ clearable: true }) declare readonly strip_preset?: string | null;
  @TextField({ clearable: true, description: DESCRIPTIONS.header_text })
  declare readonly header_text?: string | null;
  @ExpiryField({ clearable: true }) declare readonly expires_at?: string | null;
  @IntegerField({ ...LIMIT, clearable: true, description: DESCRIPTIONS.max_stamps_per_request })
  declare readonly max_stamps_per_request?: number | null;
  @IntegerField({ ...LIMIT, clearable: true, description: DESCRIPTIONS.max_stamps_per_day })
  declare readonly max_stamps_per_day?: number | null;
  @IntegerField({ ...LIMIT, clearable: true, description: DESCRIPTIONS.min_seconds_between_stamps })
  declare readonly min_seconds_between_stamps?: number | null;
  @OneOfField(BARCODE_FORMATS, { omittable: true, description: DESCRIPTIONS.barcode_format })
  declare readonly barcode_format?: BarcodeFormat;
  @MessageField('stampMessage', { clearable: true, description: DESCRIPTIONS.stamp_message })
  declare readonly stamp_message?: string | null;
  @MessageField('rewardMessage', { clearable: true, description: DESCRIPTIONS.reward_message })
  declare readonly reward_message?: string | null;
  @MessageField('redemptionMessage', {
    clearable: true,
    description: DESCRIPTIONS.redemption_message,
  })
  declare readonly redemption_message?: string | null;
}

/** Maps the names in the API to those of the attributes. */
const ATTRIBUTES = {
  name: 'name',
  card_color: 'cardColor',
  text_color: 'textColor',
  stamp_icon: 'stampIcon',
  stamp_color: 'stampColor',
  stamp_background_color: 'stampBackgroundColor',
  stamps_required: 'stampsRequired',
  initial_stamps: 'initialStamps',
  show_member_field: 'showMemberField',
  show_stamps_to_reward_field: 'showStampsToRewardField',
  auxiliary_fields: 'auxiliaryFields',
  strip_type: 'stripType',
  strip_color: 'stripColor',
  strip_opacity: 'stripOpacity',
  strip_preset: 'stripPreset',
  header_text: 'headerText',
  expires_at: 'expiresAt',
  max_stamps_per_request: 'maxStampsPerRequest',
  max_stamps_per_day: 'maxStampsPerDay',
  min_seconds_between_stamps: 'minSecondsBetweenStamps',
  barcode_format: 'barcodeFormat',
  stamp_message: 'stampMessage',
  reward_message: 'rewardMessage',
  redemption_message: 'redemptionMessage',
} as const satisfies Record<keyof UpdateCardDto, keyof CardAttributes>;

/** Converts the fields that the request contains, and no others. */
export function toCardAttributes(input: CreateCardDto): CardAttributes;
export function toCardAttributes(input: UpdateCardDto): Partial<CardAttributes>;
export function toCardAttributes(input: UpdateCardDto): Partial<CardAttributes> {
  return Object.fromEntries(
    Object.entries(ATTRIBUTES)
      .map(([wire, ours]) => [ours, input[wire as keyof UpdateCardDto]] as const)
      .filter(([, value]) => value !== undefined),
  );
}

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

@Dto('AuxiliaryField')
class AuxiliaryFieldJson {
  @TextProperty({ example: 'aux_1', description: 'The key of the field in the pass.' })
  declare readonly key: string;
  @TextProperty({ nullable: true, example: 'Open', description: AUXILIARY_DESCRIPTIONS.label })
  declare readonly label: string | null;
  @TextProperty({ example: 'Mo to Sa', description: AUXILIARY_DESCRIPTIONS.value })
  declare readonly value: string;
}

const WARNINGS: Record<CardWarning, string> = {
  stamps_look_alike:
    'Filled and empty stamps would look alike, so pictures show other colours. Choose a lighter or darker stamp_background_color.',
  text_hard_to_read: 'The text is hard to read on the card. Choose a text_color that differs more.',
};

@Dto('CardWarning')
class CardWarningJson {
  @OneOfProperty(CARD_WARNINGS, { example: 'text_hard_to_read', description: 'What it is about.' })
  declare readonly code: CardWarning;
  @TextProperty({
    example: WARNINGS.text_hard_to_read,
    description: 'What is wrong, and what to do.',
  })
  declare readonly message: string;
}

@Dto('Card')
export class CardJson {
  @IntegerProperty({ description: 'The id.' }) declare readonly id: number;
  @TextProperty({ example: 'Coffee card', description: DESCRIPTIONS.name })
  declare readonly name: string;
  @TextProperty({ example: '#6B4226', description: DESCRIPTIONS.card_color })
  declare readonly card_color: string;
  @TextProperty({ example: '#FFFFFF', description: DESCRIPTIONS.text_color })
  declare readonly text_color: string;
  @OneOfProperty(STAMP_ICONS, { description: DESCRIPTIONS.stamp_icon })
  declare readonly stamp_icon: string;
  @TextProperty({ example: '#6B4226', description: DESCRIPTIONS.stamp_color })
  declare readonly stamp_color: string;
  @TextProperty({ example: '#FFFFFF', description: DESCRIPTIONS.stamp_background_color })
  declare readonly stamp_background_color: string;
  @IntegerProperty({ example: 10, description: DESCRIPTIONS.stamps_required })
  declare readonly stamps_required: number;
  @IntegerProperty({ example: 0, description: DESCRIPTIONS.initial_stamps })
  declare readonly initial_stamps: number;
  @BooleanProperty({ description: DESCRIPTIONS.show_member_field })
  declare readonly show_member_field: boolean;
  @BooleanProperty({ description: DESCRIPTIONS.show_stamps_to_reward_field })
  declare readonly show_stamps_to_reward_field: boolean;
  @ObjectsProperty(() => AuxiliaryFieldJson, {
    description: 'Further fields on the front of a pass.',
  })
  declare readonly auxiliary_fields: AuxiliaryFieldJson[];
  @OneOfProperty(STRIP_TYPES, { description: DESCRIPTIONS.strip_type })
  declare readonly strip_type: StripType;
  @TextProperty({ nullable: true, description: DESCRIPTIONS.strip_color })
  declare readonly strip_color: string | null;
  @NumberProperty({ example: 100, description: DESCRIPTIONS.strip_opacity })
  declare readonly strip_opacity: number;
  @TextProperty({
    nullable: true,
    description: 'The picture that is shown while strip_type is preset.',
  })
  declare readonly strip_preset: string | null;
  @TextProperty({ nullable: true, description: DESCRIPTIONS.header_text })
  declare readonly header_text: string | null;
  @TimestampProperty({
    nullable: true,
    example: null,
    description: 'When the card expires; null: never.',
  })
  declare readonly expires_at: string | null;
  @TimestampProperty({
    nullable: true,
    example: null,
    description: 'When the card was archived; null while it is active.',
  })
  declare readonly archived_at: string | null;
  @IntegerProperty({ description: 'The number of rewards of the card.' })
  declare readonly rewards_count: number;
  @IntegerProperty({ description: 'The number of customers who have the card.' })
  declare readonly customer_cards_count: number;
  @IntegerProperty({ nullable: true, description: DESCRIPTIONS.max_stamps_per_request })
  declare readonly max_stamps_per_request: number | null;
  @IntegerProperty({ nullable: true, description: DESCRIPTIONS.max_stamps_per_day })
  declare readonly max_stamps_per_day: number | null;
  @IntegerProperty({ nullable: true, description: DESCRIPTIONS.min_seconds_between_stamps })
  declare readonly min_seconds_between_stamps: number | null;
  @OneOfProperty(BARCODE_FORMATS, { description: DESCRIPTIONS.barcode_format })
  declare readonly barcode_format: BarcodeFormat;
  @TextProperty({
    nullable: true,
    example: '{missing} more to your free coffee',
    description: DESCRIPTIONS.stamp_message,
  })
  declare readonly stamp_message: string | null;
  @TextProperty({
    nullable: true,
    example: 'Your {reward} is waiting for you',
    description: DESCRIPTIONS.reward_message,
  })
  declare readonly reward_message: string | null;
  @TextProperty({
    nullable: true,
    example: 'Enjoy your {reward}!',
    description: DESCRIPTIONS.redemption_message,
  })
  declare readonly redemption_message: string | null;
  @ObjectsProperty(() => CardWarningJson, {
    description: 'What people cannot see or read on the card; empty if there is nothing of it.',
  })
  declare readonly warnings: CardWarningJson[];
  @TimestampProperty({ description: 'When it was created.' }) declare readonly created_at: string;
  @TimestampProperty({ description: 'When it was last changed.' })
  declare readonly updated_at: string;
}

export function toCardJson(
  card: Card,
  counts: { rewards: number; customerCards: number },
): CardJson {
  return {
    id: card.id,
    name: card.name,
    card_color: card.cardColor,
    text_color: card.textColor,
    stamp_icon: card.stampIcon,
    stamp_color: card.stampColor,
    stamp_background_color: card.stampBackgroundColor,
    stamps_required: card.stampsRequired,
    initial_stamps: card.initialStamps,
    show_member_field: card.showMemberField,
    show_stamps_to_reward_field: card.showStampsToRewardField,
    auxiliary_fields: card.auxiliaryFields.map(({ key, label, value }) => ({ key, label, value })),
    strip_type: card.stripType,
    strip_color: card.stripColor,
    strip_opacity: card.stripOpacity,
    strip_preset: card.stripPreset,
    header_text: card.headerText,
    expires_at: card.expiresAt,
    archived_at: card.archivedAt,
    rewards_count: counts.rewards,
    customer_cards_count: counts.customerCards,
    max_stamps_per_request: card.maxStampsPerRequest,
    max_stamps_per_day: card.maxStampsPerDay,
    min_seconds_between_stamps: card.minSecondsBetweenStamps,
    barcode_format: card.barcodeFormat,
    stamp_message: card.stampMessage,
    reward_message: card.rewardMessage,
    redemption_message: card.redemptionMessage,
    warnings: findCardWarnings(card).map((code) => ({ code, message: WARNINGS[code] })),
    created_at: card.createdAt,
    updated_at: card.updatedAt,
  };
}
