import type { RecordedEvent } from '#platform/kernel/aggregate.js';
import { ForbiddenError, RejectedError } from '#platform/kernel/errors.js';
import {
  NO_DETAILS,
  getHeldCard,
  isMovedByMerge,
  type CustomerCard,
  type Template,
} from './customer-card.js';
import type {
  ActionDetails,
  CustomerCardEvent,
  ReceiptDetails,
  StampsEarned,
  StampsRemoved,
  UnlockedReward,
} from './customer-card.events.js';
import { isStamping } from './stamp-limits.js';
import { priceRewards, createUnlocks } from './unlocked-rewards.js';
import { createStampingError } from './stamping-errors.js';
import { ISSUES } from '#translations/issues.js';

/**
 * Limits an adjustment in either direction. Larger than any stamping, so that a card of another programme can be
 * imported.
 */
export const MAX_ADJUSTMENT = 1_000;

export type Adjust = {
  customerId: number;
  /** Signed, not 0. */
  stamps: number;
  reason: string;
} & Receipt;

/** The receipt number of an adjustment; a reversal has none. */
type Receipt = Pick<ActionDetails, 'externalRef'> & ReceiptDetails;

/**
 * Puts a balance right. An expired or archived card can be corrected as well: what went wrong before the end can only
 * be noticed after it.
 */
export function adjust(
  state: CustomerCard | undefined,
  template: Template,
  { customerId, stamps, ...correction }: Adjust,
): CustomerCardEvent[] {
  const card = getHeldCard(state, customerId);
  return stamps > 0
    ? addStamps(card, template, { stamps, ...correction })
    : [takeOffStamps(card, { stamps: -stamps, ...correction })];
}

export type Reverse = {
  customerId: number;
  reason: string;
  /** An event of this card. */
  event: RecordedEvent<CustomerCardEvent>;
  /** Of a redemption: what it locked, which is unlocked again for what it took before. */
  locked: UnlockedReward[];
  isReversed: boolean;
};

/** Undoes one stamping, redemption or adjustment, once. A reversal is final; an adjustment can put it right. */
export function reverse(
  state: CustomerCard | undefined,
  template: Template,
  { customerId, reason, event, locked, isReversed }: Reverse,
): CustomerCardEvent[] {
  const card = getHeldCard(state, customerId);
  if (isReversed) throw createAlreadyReversedError();
  const reverses = event.id;
  switch (event.type) {
    case 'StampsEarned': {
      assertReversible(event);
      const { stamps, source } = event.data;
      const limitDetails = isStamping(source) ? { countedAt: event.meta.occurredAt } : {};
      return [takeOffStamps(card, { stamps, reason, reverses, ...limitDetails })];
    }
    case 'StampsRemoved':
      assertReversible(event);
      return addStamps(card, template, { stamps: event.data.stamps, reason, reverses });
    case 'RewardRedeemed': {
      const rewards = priceRewards(template.rewards, locked);
      const { stampsSpent: stamps } = event.data;
      return addStamps(card, { ...template, rewards }, { stamps, reason, reverses });
    }
    default:
      throw new RejectedError(
        { base: [ISSUES.not_reversible] },
        'validation_failed',
        'Choose an event of the types stamp.earned, stamp.removed or reward.redeemed.',
      );
  }
}

/**
 * @throws RejectedError for what only moves stamps or undoes something: taking it back alone would make or lose stamps
 */
function assertReversible({ data }: StampsEarned | StampsRemoved): void {
  if (isMovedByMerge(data)) {
    throw new RejectedError(
      { base: [ISSUES.moved_by_merge] },
      'validation_failed',
      'To move them back merge or unmerge the customers; to put this balance right adjust it.',
    );
  }
  if (data.reverses === null) return;
  throw new RejectedError(
    { base: [ISSUES.is_reversal] },
    'validation_failed',
    'Adjust the balance instead.',
  );
}

/** How long staff may reverse what they did themselves. */
const OWN_REVERSAL_MINUTES = 10;

/**
 * Checks that staff may reverse an event. What counts is when it was recorded: a client says itself when it happened.
 * @param isOwn whether the same user caused it, with whichever token
 * @throws ForbiddenError
 */
export function assertStaffMayReverse(
  { meta }: { meta: { recordedAt: string } },
  isOwn: boolean,
  now: Date,
): void {
  const endsAt = Date.parse(meta.recordedAt) + OWN_REVERSAL_MINUTES * 60_000;
  if (isOwn && now.getTime() <= endsAt) return;
  throw new ForbiddenError(
    `Staff may only reverse what they did themselves, within ${OWN_REVERSAL_MINUTES} minutes`,
    'Have a manager or an owner of the account reverse it.',
  );
}

export function createAlreadyReversedError(): RejectedError {
  return new RejectedError({ base: [ISSUES.already_reversed] });
}

type Correction = { stamps: number; reason: string; reverses?: string | null } & Partial<Receipt>;

function addStamps(
  card: CustomerCard,
  template: Template,
  { stamps, ...correction }: Correction,
): CustomerCardEvent[] {
  return [
    {
      type: 'StampsEarned',
      data: { stamps, ...createDetails(card, correction), templateVersion: template.version },
    },
    ...createUnlocks(card.customerId, card.stampsCount + stamps, card.unlocked, template),
  ];
}

/**
 * Takes stamps off. Unlocked rewards stay unlocked: otherwise the same crossing would be announced twice (STAMP-37).
 */
function takeOffStamps(
  card: CustomerCard,
  { stamps, countedAt, ...correction }: Correction & { countedAt?: string },
): StampsRemoved {
  if (card.stampsCount < stamps) {
    throw createStampingError(
      { base: [ISSUES.not_enough_stamps({ required: stamps, stamps: card.stampsCount })] },
      'insufficient_stamps',
      'Reverse the redemption that spent them first, or take off fewer.',
    );
  }
  return {
    type: 'StampsRemoved',
    data: {
      stamps,
      ...createDetails(card, correction),
      ...(countedAt !== undefined && { countedAt }),
    },
  };
}

function createDetails(
  { customerId }: CustomerCard,
  { reason, reverses = null, ...receipt }: Omit<Correction, 'stamps'>,
) {
  return {
    ...NO_DETAILS,
    ...receipt,
    customerId,
    source: 'adjustment',
    silent: false,
    personal: { note: reason },
    reverses,
  } as const;
}
