import { NotEquals } from 'class-validator';
import { toPublicEventId } from '#platform/kernel/public-id.js';
import {
  BooleanField,
  Field,
  IdentifierField,
  IntegerField,
  OneOfField,
  TextField,
  TimeField,
  integerKind,
} from '#platform/http/fields.js';
import { Dto } from '#platform/http/dtos.js';
import {
  BooleanProperty,
  IntegerProperty,
  ObjectProperty,
  ObjectsProperty,
  OneOfProperty,
  TextProperty,
  TimestampProperty,
} from '#platform/http/response-fields.js';
import { MAX_ADJUSTMENT } from './corrections.js';
import { getCardStatus, type CustomerCard, type ShownTemplate } from './customer-card.js';
import type { ActionDetails, RewardRedeemed } from './customer-card.events.js';
import { findAvailableRewards, calculateProgress } from './unlocked-rewards.js';
import { ISSUES } from '#translations/issues.js';

/** Limits the stamps of one stamping. */
export const MAX_STAMPS = 100;

/** Describes the fields that several classes have. */
const DESCRIPTIONS = {
  card_id: 'The card, which is a template.',
  location_id: 'The location where it happened.',
  staff_ref: 'The member of staff, by a name of your choice.',
  reward_id: 'The reward.',
  external_ref:
    'A receipt number, which counts once in a store: the same one again gets the first response. After a reversal it may be used again on another customer card.',
  id: 'The id.',
};

const EVENT_ID = {
  example: 'evt_01KJM3Z0Q8F7W2N4B6D8C0E1G3',
  description: 'The id of its event, which reverse takes; webhooks and the history show the same.',
};
/** A dry run has no event. */
const WRITTEN_EVENT_ID = {
  ...EVENT_ID,
  nullable: true,
  description: `${EVENT_ID.description} Null in a dry run.`,
} as const;

@Dto('CustomerCardInput', { example: { card_id: 2 } })
export class EnrolDto {
  @IntegerField({ min: 1, description: DESCRIPTIONS.card_id }) declare readonly card_id: number;
}

/** The details that a stamping or a redemption may have, besides its receipt number. */
export class ActionDetailsDto {
  @BooleanField({
    default: false,
    description:
      'true: the pass is updated without a message to its holder. Webhooks are sent all the same.',
  })
  declare readonly skip_notifications: boolean;
  @IntegerField({ min: 1, optional: true, description: DESCRIPTIONS.location_id })
  declare readonly location_id: number | null;
  @TextField({ optional: true, description: DESCRIPTIONS.staff_ref }) declare readonly staff_ref:
    | string
    | null;
  @TimeField({ optional: true, description: 'When it happened, for a client that was offline' })
  declare readonly occurred_at: Date | null;
  @TextField({
    max: 500,
    optional: true,
    description: 'A note for the history. It is personal, and gone once the customer is erased.',
  })
  declare readonly note: string | null;
  @OneOfField(['api', 'pos'], {
    default: 'api',
    description: 'pos: a point-of-sale system. It is shown in the history and in events.',
  })
  declare readonly source: 'api' | 'pos';
}

class CardActionDto extends ActionDetailsDto {
  @IdentifierField({ optional: true, description: DESCRIPTIONS.external_ref })
  declare readonly external_ref: string | null;
}

@Dto('StampInput', { example: { stamps: 5, external_ref: 'receipt-1001' } })
export class StampDto extends CardActionDto {
  @IntegerField({ min: 1, max: MAX_STAMPS, description: 'The number of stamps to add.' })
  declare readonly stamps: number;
}

@Dto('RedeemInput', { example: { reward_id: 1 } })
export class RedeemDto extends CardActionDto {
  @IntegerField({ min: 1, description: DESCRIPTIONS.reward_id }) declare readonly reward_id: number;
}

const NOT_ZERO = NotEquals(0, { context: ISSUES.zero });
const adjustment = integerKind(-MAX_ADJUSTMENT, MAX_ADJUSTMENT, NOT_ZERO);

@Dto('AdjustInput', { example: { stamps: 1, reason: 'A stamp was forgotten at the counter' } })
export class AdjustDto {
  @Field(
    { ...adjustment, schema: { ...adjustment.schema, not: { const: 0 } } },
    { description: 'Positive adds, negative takes off' },
  )
  declare readonly stamps: number;
  @ReasonField() declare readonly reason: string;
  @IdentifierField({ optional: true, description: DESCRIPTIONS.external_ref })
  declare readonly external_ref: string | null;
}

@Dto('ReverseInput', { example: { reason: 'Stamped the wrong card' } })
export class ReverseDto {
  @ReasonField() declare readonly reason: string;
}

@Dto('CardActionQuery')
export class CardActionQuery {
  @BooleanField({ default: false, description: 'true: the same response, but nothing is stored' })
  declare readonly dry_run: boolean;
}

@Dto('CustomerCard')
export class CustomerCardJson {
  @IntegerProperty({ description: DESCRIPTIONS.id }) declare readonly id: number;
  @TextProperty({
    format: 'uuid',
    example: '0199c0de-7b3a-7c2f-9d51-0a4b6c8d9e01',
    description: 'The id in the addresses of its passes.',
  })
  declare readonly uuid: string;
  @IntegerProperty({ description: DESCRIPTIONS.card_id }) declare readonly card_id: number;
  @TextProperty({ example: 'Coffee card', description: 'The name of the card.' })
  declare readonly card_name: string;
  @OneOfProperty(['active', 'completed', 'expired'], {
    description:
      'active; completed, with stamps for a full card; or expired, which goes before both.',
  })
  declare readonly status: 'active' | 'completed' | 'expired';
  @IntegerProperty({ example: 5, description: 'The stamps on the card.' })
  declare readonly stamps_count: number;
  @IntegerProperty({
    example: 5,
    description: 'The number of stamps missing to a full card, 0 beyond it.',
  })
  declare readonly stamps_remaining: number;
  @IntegerProperty({
    example: 50,
    description: 'How far it is to the next active reward, or else to a full card, rounded down.',
  })
  declare readonly progress_percentage: number;
  @BooleanProperty({
    example: false,
    description:
      'Whether the customer has the card on a phone: in Apple Wallet, Google Wallet, or installed from its page',
  })
  declare readonly pass_installed: boolean;
  @PassUrlProperty('apple', 'Apple Wallet') declare readonly apple_wallet_url: string;
  @PassUrlProperty('google', 'Google Wallet') declare readonly google_wallet_url: string;
  @TimestampProperty({ description: 'When the customer got the card.' })
  declare readonly issued_at: string;
  @TimestampProperty({ description: 'When it was created.' }) declare readonly created_at: string;
  @TimestampProperty({ description: 'When it was last changed.' })
  declare readonly updated_at: string;
  @TextProperty({ example: 'K7QX2M9P', description: 'The content of the barcode' })
  declare readonly code: string;
}

@Dto('AvailableReward')
export class AvailableRewardJson {
  @IntegerProperty({ description: DESCRIPTIONS.id }) declare readonly id: number;
  @TextProperty({ example: 'Free coffee', description: 'The name.' }) declare readonly name: string;
  @TextProperty({ nullable: true, example: 'Any size', description: 'A text about it.' })
  declare readonly description: string | null;
  @IntegerProperty({ example: 5, description: 'The number of stamps it takes.' })
  declare readonly stamps_required: number;
}

@Dto('CustomerCardDetail')
export class CustomerCardDetailJson extends CustomerCardJson {
  @IntegerProperty({ description: 'The customer.' }) declare readonly customer_id: number;
  @IntegerProperty({ description: 'The store.' }) declare readonly account_id: number;
  @ObjectsProperty(() => AvailableRewardJson, {
    description:
      'Active rewards that the balance covers, cheapest first, each with the stamps that it takes on this card.',
  })
  declare readonly available_rewards: AvailableRewardJson[];
}

@Dto('ChangedCustomerCard')
export class ChangedCustomerCardJson extends CustomerCardDetailJson {
  @TextProperty(WRITTEN_EVENT_ID) declare readonly event_id: string | null;
}

@Dto('RedemptionRecord')
export class RedemptionRecordJson {
  @IntegerProperty({ description: DESCRIPTIONS.id }) declare readonly id: number;
  @IntegerProperty({ description: DESCRIPTIONS.reward_id }) declare readonly reward_id: number;
  @TextProperty({ example: 'Free coffee', description: 'The name of the reward, as it was then.' })
  declare readonly reward_name: string;
  @IntegerProperty({ example: 5, description: 'The number of stamps that were spent.' })
  declare readonly stamps_spent: number;
  @IntegerProperty({ example: 0, description: 'The balance left on the card' })
  declare readonly stamps_remaining: number;
  @TimestampProperty({ description: 'When it happened' }) declare readonly redeemed_at: string;
  @TextProperty({ nullable: true, example: 'R-1042', description: 'The receipt number' })
  declare readonly external_ref: string | null;
  @TextProperty({ nullable: true, example: 'till-2', description: DESCRIPTIONS.staff_ref })
  declare readonly staff_ref: string | null;
  @IntegerProperty({ nullable: true, example: null, description: DESCRIPTIONS.location_id })
  declare readonly location_id: number | null;
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
  @BooleanProperty({ only: true, description: 'Always true: a redemption that fails is an error.' })
  declare readonly success: true;
  @ObjectProperty(() => RedemptionRecordJson, { description: 'The redemption.' })
  declare readonly redemption: RedemptionRecordJson;
  @TextProperty(WRITTEN_EVENT_ID) declare readonly event_id: string | null;
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
  const available: AvailableRewardJson[] = [];
  for (const reward of findAvailableRewards(card, renderContext.template)) {
    const { id, name, description, stampsRequired } = reward;
    available.push({ id, name, description, stamps_required: stampsRequired });
  }
  return {
    ...toCustomerCardJson(card, renderContext),
    customer_id: card.customerId,
    account_id: card.accountId,
    available_rewards: available,
  };
}

/** The event that a request has written; null in a dry run. */
export type WrittenEvent = { id: string } | null;

export function toChangedCustomerCardJson(
  card: CustomerCard,
  renderContext: RenderContext,
  event: WrittenEvent,
): ChangedCustomerCardJson {
  return {
    ...toCustomerCardDetailJson(card, renderContext),
    event_id: event && toPublicEventId(event.id),
  };
}

/** @param card as the redemption left it */
export function toRedemptionJson(
  card: CustomerCard,
  redeemed: Redeemed,
  event: WrittenEvent,
): RedemptionJson {
  return {
    success: true,
    redemption: toRedemptionRecordJson(redeemed, card.stampsCount),
    event_id: event && toPublicEventId(event.id),
  };
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
  input: ActionDetailsDto & { external_ref: string | null },
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

function PassUrlProperty(platform: string, wallet: string): PropertyDecorator {
  return TextProperty({
    format: 'uri',
    example: `https://inkpad.example/passes/0199c0de-7b3a-7c2f-9d51-0a4b6c8d9e01/${platform}`,
    description: `The address at which the customer adds the card to ${wallet}.`,
  });
}

function ReasonField(): PropertyDecorator {
  return TextField({ max: 500, description: 'Why, for the history' });
}
