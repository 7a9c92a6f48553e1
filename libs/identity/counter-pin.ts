import { normalizeNumber } from '#platform/kernel/text.js';
import { isRepeated, isSequence } from './password.js';
import { ISSUES } from '#translations/issues.js';
import type { Issue } from '#platform/kernel/issues.js';

export const MIN_PIN_LENGTH = 4;
export const MAX_PIN_LENGTH = 6;
/** Wrong attempts in a row. Then the PIN is not checked any more until its user sets a new one. */
export const MAX_PIN_FAILURES = 10;
/**
 * Wrong attempts since it was set, however often it was right in between. A right one forgets those in a row: a colleague
 * would have nine guesses each time.
 */
export const MAX_ALL_PIN_FAILURES = 50;

/** Returns the PIN in ASCII digits, whatever the keyboard's script is. */
export function normalizePin(input: string): string {
  return normalizeNumber(input).replaceAll(/\s/g, '');
}

/** Checks a new PIN. @returns why it is refused */
export function findPinIssue(pin: string): Issue | undefined {
  if (!/^\d+$/.test(pin) || pin.length < MIN_PIN_LENGTH || pin.length > MAX_PIN_LENGTH) {
    return ISSUES.pin_length({ min: MIN_PIN_LENGTH, max: MAX_PIN_LENGTH });
  }
  // What people try first: one digit, a pair or a half that repeats, and digits that follow one another.
  return isRepeated(pin) || isSequence(pin) ? ISSUES.pin_too_easy : undefined;
}
