import type { RewardRedeemed, StampsEarned, StampsRemoved } from './customer-card.events.js';

/** The operations that a receipt number counts for, each by itself. */
export const RECEIPT_OPERATIONS = ['stamp', 'redeem', 'adjust'] as const;
export type ReceiptOperation = (typeof RECEIPT_OPERATIONS)[number];

/** An event that may have a receipt number. */
export type ReceiptEvent = StampsEarned | StampsRemoved | RewardRedeemed;

/** Limits how often one number is used: each time after the first needs a reversal of the time before. */
export const MAX_RECEIPT_USES = 10;

/**
 * Creates the unique value of a receipt number. Each use after a reversal has a value of its own, so the card of an
 * earlier use keeps that value and can repeat its result (RECEIPT-13).
 */
export function createReceiptValue(
  operation: ReceiptOperation,
  externalRef: string,
  use: number,
): { kind: string; value: string } {
  // No number contains U+0000.
  const value = use === 0 ? externalRef : `${externalRef}\u0000${use}`;
  return { kind: `${operation}_receipt`, value };
}

/** Finds the unique values that an event with a receipt number holds. */
export function findReceiptValues({ type, data }: ReceiptEvent): { kind: string; value: string }[] {
  const { externalRef, receiptUse } = data;
  if (externalRef === null) return [];
  if (type === 'RewardRedeemed') return [createReceiptValue('redeem', externalRef, receiptUse)];
  const operation = data.source === 'adjustment' ? 'adjust' : 'stamp';
  return [createReceiptValue(operation, externalRef, receiptUse)];
}
