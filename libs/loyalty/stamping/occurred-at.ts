import { RejectedError } from '#platform/kernel/errors.js';
import { ISSUES } from '#translations/issues.js';

/** By how much the clock of a client may be off, in both directions. */
const MAX_CLOCK_DIFFERENCE_MS = 5 * 60_000;

/** Asserts that an action on a card may have happened at a time (STAMP-24, STAMP-25). */
export function assertOccurredAt(
  { issuedAt }: { issuedAt: string },
  occurredAt: Date | undefined,
  now: Date,
): void {
  if (occurredAt === undefined) return;
  if (occurredAt.getTime() > now.getTime() + MAX_CLOCK_DIFFERENCE_MS) {
    throw new RejectedError({ occurred_at: [ISSUES.in_future] });
  }
  if (occurredAt.getTime() < Date.parse(issuedAt) - MAX_CLOCK_DIFFERENCE_MS) {
    throw new RejectedError({ occurred_at: [ISSUES.before_card] });
  }
}

/** Returns the time that an action is recorded with: none is before the card was issued. */
export function getOccurredAt(
  card: { issuedAt: string } | undefined,
  occurredAt: Date | undefined,
): Date | undefined {
  const issuedAt = card && new Date(card.issuedAt);
  return issuedAt && occurredAt && occurredAt < issuedAt ? issuedAt : occurredAt;
}
