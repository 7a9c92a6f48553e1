import { DamagedHistoryError } from '#platform/kernel/errors.js';
import { toPublicEventId } from '#platform/kernel/public-id.js';
import { IdentifierField, IntegerField, TimeField } from '#platform/http/fields.js';
import { Dto } from '#platform/http/dtos.js';
import { PageQuery } from '#platform/http/page.js';
import {
  IntegerProperty,
  TextProperty,
  TimestampProperty,
} from '#platform/http/response-fields.js';
import {
  toRedemptionRecordJson,
  RedemptionRecordJson,
} from '#loyalty/stamping/customer-card.dto.js';
import type { RewardRedeemed } from '#loyalty/stamping/customer-card.events.js';
import { assertHasEvent, type DetailedEntry } from './history-entry.dto.js';
import type { RedemptionFilter } from './redemption-query.js';

@Dto('RedemptionListQuery')
export class RedemptionListQuery extends PageQuery {
  @IntegerField({ min: 1, optional: true, description: 'Only redemptions from this card' })
  declare readonly card_id: number | null;
  @IntegerField({ min: 1, optional: true, description: 'Only those of this customer' })
  declare readonly customer_id: number | null;
  @IntegerField({ min: 1, optional: true, description: 'Only those of this reward' })
  declare readonly reward_id: number | null;
  @IntegerField({ min: 1, optional: true, description: 'Only those at this location' })
  declare readonly location_id: number | null;
  @IdentifierField({ optional: true, description: 'Only those with exactly this receipt number' })
  declare readonly external_ref: string | null;
  @TimeField({ optional: true, description: 'Redeemed at or after this time' })
  declare readonly from: Date | null;
  @TimeField({ optional: true, moment: 'next', description: 'Redeemed before this time' })
  declare readonly to: Date | null;
}

@Dto('ListedRedemption')
export class ListedRedemptionJson extends RedemptionRecordJson {
  @IntegerProperty({ description: 'The customer who redeemed it' })
  declare readonly customer_id: number;
  @IntegerProperty({ description: 'The card that the stamps were on' })
  declare readonly customer_card_id: number;
  @IntegerProperty({ description: 'The template of that card' }) declare readonly card_id: number;
  @TimestampProperty({
    nullable: true,
    example: null,
    description: 'When it was undone; null while it stands',
  })
  declare readonly reversed_at: string | null;
  @TextProperty({
    example: 'evt_01KJM3Z0Q8F7W2N4B6D8C0E1G3',
    description: 'The id of its event, which reverse takes',
  })
  declare readonly event_id: string;
}

export function toRedemptionFilter(query: RedemptionListQuery): RedemptionFilter {
  const { card_id, customer_id, reward_id, location_id, from, to } = query;
  return {
    cardId: card_id,
    customerId: customer_id,
    rewardId: reward_id,
    locationId: location_id,
    from,
    to,
  };
}

/** @throws DamagedHistoryError when its event is lost, or the balance after it */
export function toListedRedemptionJson(redemption: DetailedEntry): ListedRedemptionJson {
  assertHasEvent(redemption);
  const { entry, event, reversedAt } = redemption;
  const { customerCardId, cardId, balance, occurredAt } = entry;
  const data = event.data as RewardRedeemed['data'];
  if (customerCardId === null || cardId === null || balance === null) {
    throw new DamagedHistoryError('past', `events before ${entry.eventId} are missing`);
  }
  return {
    ...toRedemptionRecordJson({ data, meta: { occurredAt } }, balance),
    customer_id: data.customerId,
    customer_card_id: customerCardId,
    card_id: cardId,
    reversed_at: reversedAt,
    event_id: toPublicEventId(entry.eventId),
  };
}
