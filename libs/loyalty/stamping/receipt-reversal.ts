import { getBalanceChange, type RecordedEvent } from '#platform/kernel/aggregate.js';
import { reverse } from './corrections.js';
import type { CustomerCard, Template } from './customer-card.js';
import {
  customerCardEvents,
  type CustomerCardEvent,
  type UnlockedReward,
} from './customer-card.events.js';
import { createStampingError } from './stamping-errors.js';
import { ISSUES } from '#translations/issues.js';

/** A stamping or redemption of a receipt. @property locked what the redemption has locked */
export type ReceiptAction = { event: RecordedEvent<CustomerCardEvent>; locked: UnlockedReward[] };

/**
 * Reverses what a receipt has done to one card. The stamps are taken off first, if the balance covers them: otherwise
 * what the redemption gives back might unlock rewards that the card reaches only with those stamps.
 */
export function reverseReceipt(
  card: CustomerCard,
  template: Template,
  { actions, reason }: { actions: ReceiptAction[]; reason: string },
): CustomerCardEvent[] {
  assertNotMerged(card);
  const stampings = actions.filter(({ event }) => getChange(event) > 0);
  const redemptions = actions.filter(({ event }) => getChange(event) <= 0);
  const earnedStamps = stampings.reduce((sum, { event }) => sum + getChange(event), 0);
  const ordered =
    card.stampsCount >= earnedStamps
      ? [...stampings, ...redemptions]
      : [...redemptions, ...stampings];
  let { stampsCount } = card;
  return ordered.flatMap(({ event, locked }) => {
    const { customerId } = card;
    const events = reverse({ ...card, stampsCount }, template, {
      customerId,
      reason,
      event,
      locked,
      isReversed: false,
    });
    stampsCount -= getChange(event);
    return events;
  });
}

function getChange(event: CustomerCardEvent): number {
  return getBalanceChange(customerCardEvents, event) ?? 0;
}

function assertNotMerged({ id, mergedInto }: CustomerCard): void {
  if (!mergedInto) return;
  const survivor = `customer card ${mergedInto.id} of customer ${mergedInto.customerId}`;
  throw createStampingError(
    { base: [ISSUES.receipt_of_merged_card({ id, card: survivor })] },
    'customer_merged',
    `Unmerge the two customers first, or adjust the balance of ${survivor}.`,
  );
}
