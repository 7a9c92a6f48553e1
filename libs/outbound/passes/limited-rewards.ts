import type { PassOffer } from './pass-content.js';

/** The rewards of a pass: phones fetch it with every stamp, and Google refuses requests that are too large. */
const MAX_REWARDS = 20;
const MAX_DESCRIPTION_LENGTH = 300;

/**
 * Limits how much of its rewards a pass shows: the next ones, with the beginning of long descriptions. The
 * web card has all of them.
 */
export function limitRewards<R extends PassOffer>(
  all: R[],
): { rewards: R[]; omittedCount: number } {
  const rewards = all.slice(0, MAX_REWARDS).map((reward) => ({
    ...reward,
    description: reward.description && shorten(reward.description),
  }));
  return { rewards, omittedCount: all.length - rewards.length };
}

function shorten(text: string): string {
  const characters = [...text];
  return characters.length > MAX_DESCRIPTION_LENGTH
    ? `${characters
        .slice(0, MAX_DESCRIPTION_LENGTH - 1)
        .join('')
        .trimEnd()}…`
    : text;
}
