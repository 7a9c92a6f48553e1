import {
  BooleanField,
  Field,
  IdentifierField,
  IntegerField,
  OneOfField,
  TextField,
  TimeField,
} from '#http/fields.js';
import { Dto } from '#http/fields.pipe.js';
import { readInteger, type Checked } from '#http/readers.js';
import {
  BooleanProperty,
  IntegerProperty,
  ObjectProperty,
  ObjectsProperty,
  OneOfProperty,
  TextProperty,
  TimestampProperty,
} from '#http/response-fields.js';
import { MAX_ADJUSTMENT } from './corrections.js';
import { getCardStatus, type CustomerCard, type ShownTemplate } from './customer-card.js';
import type { ActionDetails, RewardRedeemed } from './customer-card.events.js';
import { findAvailableRewards, calculateProgress, type Milestone } from './unlocked-rewards.js';

@Dto('CustomerCardInput', { example: { card_id: 2 } })
export class EnrolDto {
  @IntegerField({ min: 1 }) declare readonly card_id: number;
}

/** The details that a stamping or a redemption may have. */
class CardActionDto {
  @BooleanField({ default: false }) declare readonly skip_notifications: boolean;
  @IntegerField({ min: 1, optional: true }) declare readonly location_id: number | null;
  @TextField({ optional: true }) declare readonly staff_ref: string | null;
  @IdentifierField({ optional: true }) declare readonly external_ref: string | null;
  @TimeField({ optional: true, description: 'When it happened, for a till that was offline' })
  declare readonly occurred_at: Date | null;
  @TextField({ max: 500, optional: true }) declare readonly note: string | null;
  @OneOfField(['api', 'pos'], { default: 'api' }) declare readonly source: 'api' | 'pos';
}

@Dto('StampInput', { example: { stamps: 5, external_ref: 'receipt-1001' } })
export class StampDto extends CardActionDto {
  @IntegerField({ min: 1, max: 100 }) declare readonly stamps: number;
}

@Dto('RedeemInput', { example: { reward_id: 1 } })
export class RedeemDto extends CardActionDto {
  @IntegerField({ min: 1 }) declare readonly reward_id: number;
}

@Dto('AdjustInput', { example: { stamps: 1, reason: 'A stamp was forgotten at the counter' } })
export class AdjustDto {
  @Field(
    readAdjustment,
    {
      type: 'integer',
      minimum: -MAX_ADJUSTMENT,
      maximum: MAX_ADJUSTMENT,
      not: { const: 0 },
    },
    { description: 'Positive adds, negative takes off' },
  )
  declare readonly stamps: number;
  @ReasonField() declare readonly reason: string;
}

@Dto('ReverseInput', { example: { reason: 'Stamped the wrong card' } })
export class ReverseDto {
  @ReasonField() declare readonly reason: string;
}

@Dto('CardActionQuery')
export class CardActionQuery {
  @BooleanField({ default: false, description: 'true: the same answer, but nothing is stored' })
  declare readonly dry_run: boolean;
}

@Dto('CustomerCard')
export class CustomerCardJson {
  @IntegerProperty() declare readonly id: number;
  @TextProperty({ format: 'uuid', example: '0199c0de-7b3a-7c2f-9d51-0a4b6c8d9e01' })
  declare readonly uuid: string;
  @IntegerProperty() declare readonly card_id: number;
  @TextProperty({ example: 'Coffee card' }) declare readonly card_name: string;
  @OneOfProperty(['active', 'completed', 'expired'])
  declare readonly status: 'active' | 'completed' | 'expired';
  @IntegerProperty({ example: 5 }) declare readonly stamps_count: number;
  @IntegerProperty({ example: 5 }) declare readonly stamps_remaining: number;
  @IntegerProperty({ example: 50 }) declare readonly progress_percentage: number;
  @BooleanProperty({
    example: false,
    description:
      'Whether the customer has the card on a phone: in Apple Wallet, Google Wallet, or installed from its page',
  })
  declare readonly pass_installed: boolean;
  @PassUrlProperty('apple') declare readonly apple_wallet_url: string;
  @PassUrlProperty('google') declare readonly google_wallet_url: string;
  @TimestampProperty() declare readonly issued_at: string;
  @TimestampProperty() declare readonly created_at: string;
  @TimestampProperty() declare readonly updated_at: string;
  @TextProperty({ example: 'K7QX2M9P', description: 'The content of the barcode' })
  declare readonly code: string;
}

@Dto('AvailableReward')
export class AvailableRewardJson {
  @IntegerProperty() declare readonly id: number;
  @TextProperty({ example: 'Free coffee' }) declare readonly name: string;
  @TextProperty({ nullable: true, example: 'Any size' }) declare readonly description:
    | string
    | null;
  @IntegerProperty({ example: 5 }) declare readonly stamps_required: number;
}

@Dto('CustomerCardDetail')
export class CustomerCardDetailJson extends CustomerCardJson {
  @IntegerProperty() declare readonly customer_id: number;
  @IntegerProperty() declare readonly account_id: number;
  @ObjectsProperty(() => AvailableRewardJson)
  declare readonly available_rewards: AvailableRewardJson[];
}

@Dto('RedemptionRecord')
export class RedemptionRecordJson {
  @IntegerProperty() declare readonly id: number;
  @IntegerProperty() declare readonly reward_id: number;
  @TextProperty({ example: 'Free coffee' }) declare readonly reward_name: string;
  @IntegerProperty({ example: 5 }) declare readonly stamps_spent: number;
  @IntegerProperty({ example: 0, description: 'The balance left on the card' })
  declare readonly stamps_remaining: number;
  @TimestampProperty({ description: 'When it happened' }) declare readonly redeemed_at: string;
  @TextProperty({ nullable: true, example: 'R-1042', description: 'The receipt number' })
  declare readonly external_ref: string | null;
  @TextProperty({ nullable: true, example: 'till-2' }) declare readonly staff_ref: string | null;
  @IntegerProperty({ nullable: true, example: null }) declare readonly location_id: number | null;
  @TextProperty({
    nullable: true,
    example: null,
    description: 'Null once the customer is erased',
  })
  declare readonly note: string | null;
  @TimestampProperty({ description: 'The same as redeemed_at, by the name that stampings have' })
  declare readonly occurred_at: string;
}

@Dto('Redemption')
export class RedemptionJson {
  @BooleanProperty({ only: true }) declare readonly success: true;
  @ObjectProperty(() => RedemptionRecordJson) declare readonly redemption: RedemptionRecordJson;
}

/** The render context of a customer card: all that its JSON depends on besides the card itself. */
export type RenderContext = {
  template: ShownTemplate;
  now: Date;
  publicUrl: string;
  passInstalled: boolean;
};

export function toCustomerCardJson(
  card: CustomerCard,
  renderContext: RenderContext,
): CustomerCardJson {
  const { template, now, publicUrl, passInstalled } = renderContext;
  return {
    id: card.id,
    uuid: card.uuid,
    card_id: card.cardId,
    card_name: template.name,
    status: getCardStatus(card.stampsCount, template, now),
    stamps_count: card.stampsCount,
    stamps_remaining: Math.max(0, template.stampsRequired - card.stampsCount),
    progress_percentage: calculateProgress(card, template),
    pass_installed: passInstalled,
    apple_wallet_url: `${publicUrl}/passes/${card.uuid}/apple`,
    google_wallet_url: `${publicUrl}/passes/${card.uuid}/google`,
    issued_at: card.issuedAt,
    created_at: card.issuedAt,
    updated_at: card.updatedAt,
    code: card.code,
  };
}

export function toCustomerCardDetailJson(
  card: CustomerCard,
  renderContext: RenderContext,
): CustomerCardDetailJson {
  return {
    ...toCustomerCardJson(card, renderContext),
    customer_id: card.customerId,
    account_id: card.accountId,
    available_rewards: findAvailableRewards(card, renderContext.template).map(
      toAvailableRewardJson,
    ),
  };
}

function toAvailableRewardJson({ id, name, description, stampsRequired }: Milestone) {
  return { id, name, description, stamps_required: stampsRequired };
}

/** @param card as the redemption left it */
export function toRedemptionJson(card: CustomerCard, redeemed: Redeemed): RedemptionJson {
  return { success: true, redemption: toRedemptionRecordJson(redeemed, card.stampsCount) };
}

type Redeemed = Pick<RewardRedeemed, 'data'> & { meta: { occurredAt: string } };

/** @param balance that the redemption left */
export function toRedemptionRecordJson(
  { data, meta }: Redeemed,
  balance: number,
): RedemptionRecordJson {
  return {
    id: data.redemptionId,
    reward_id: data.rewardId,
    reward_name: data.rewardName,
    stamps_spent: data.stampsSpent,
    stamps_remaining: balance,
    redeemed_at: meta.occurredAt,
    external_ref: data.externalRef,
    staff_ref: data.staffRef,
    location_id: data.locationId,
    note: data.personal?.note ?? null,
    occurred_at: meta.occurredAt,
  };
}

export function toActionDetails(
  input: CardActionDto,
): ActionDetails & { source: 'api' | 'pos'; occurredAt: Date | undefined } {
  return {
    locationId: input.location_id,
    staffRef: input.staff_ref,
    externalRef: input.external_ref,
    silent: input.skip_notifications,
    personal: input.note === null ? null : { note: input.note },
    source: input.source,
    occurredAt: input.occurred_at ?? undefined,
  };
}

function PassUrlProperty(platform: string): PropertyDecorator {
  return TextProperty({
    format: 'uri',
    example: `https://inkpad.example/passes/0199c0de-7b3a-7c2f-9d51-0a4b6c8d9e01/${platform}`,
  });
}

function ReasonField(): PropertyDecorator {
  return TextField({ max: 500, description: 'Why, for the history' });
}

function readAdjustment(value: unknown): Checked<number> {
  const read = readInteger(-MAX_ADJUSTMENT, MAX_ADJUSTMENT)(value);
  return 'value' in read && read.value === 0 ? { errors: ['must not be 0'] } : read;
}
