import type { CardTexts } from './card.events.js';
import { ISSUES } from '#translations/issues.js';
import type { Issue } from '#platform/kernel/issues.js';

/** The most characters of a text that a store writes: a phone shows about four lines of a notification. */
export const MAX_MESSAGE_LENGTH = 160;

/** What a text may contain: `{stamps}` is replaced by the balance, `{missing}` by the stamps to the next reward. */
export const PLACEHOLDERS = {
  stampMessage: ['stamps', 'missing', 'reward', 'card', 'store'],
  rewardMessage: ['stamps', 'reward', 'card', 'store'],
  redemptionMessage: ['stamps', 'reward', 'card', 'store'],
} as const satisfies Record<keyof CardTexts, readonly string[]>;

export type Placeholder = (typeof PLACEHOLDERS)[keyof CardTexts][number];

const IN_BRACES = /\{([^{}]*)\}/g;

/** Finds what is in braces and no placeholder of this text. @returns undefined when the text is in order */
export function findMessageIssue(text: string, name: keyof CardTexts): Issue | undefined {
  const placeholders: readonly string[] = PLACEHOLDERS[name];
  const inBraces = [...text.matchAll(IN_BRACES)].map(([, inner = '']) => inner);
  if (inBraces.every((inner) => placeholders.includes(inner))) return undefined;
  const names = placeholders.map((placeholder) => `{${placeholder}}`).join(', ');
  return ISSUES.unknown_placeholder({ list: names });
}

/** Tells whether the text says a number, so that it differs from stamp to stamp. */
export function hasNumber(text: string): boolean {
  return /\{(?:stamps|missing)\}/.test(text);
}

/**
 * Fills in a text.
 * @returns undefined when a placeholder has no value: nothing is missing to a reward that does not exist
 */
export function fillMessage(
  text: string,
  values: Partial<Record<Placeholder, string>>,
): string | undefined {
  let isComplete = true;
  const filled = text.replaceAll(IN_BRACES, (_, inner: Placeholder) => {
    const value = values[inner];
    if (value === undefined) isComplete = false;
    return value ?? '';
  });
  return isComplete ? filled : undefined;
}
