import type { ErrorEntry } from '#platform/kernel/error-catalogue.js';
import { RejectedError } from '#platform/kernel/errors.js';
import type { FieldIssues } from '#platform/kernel/issues.js';

/** Lists the codes with which commands to customers and their cards are rejected. Published like the platform's. */
export const STAMPING_ERRORS = {
  insufficient_stamps: {
    status: 422,
    advice:
      'Collect the missing stamps first, or choose one of the available_rewards of the customer card.',
    meaning: 'The customer card holds too few stamps for this.',
  },
  reward_inactive: {
    status: 422,
    advice:
      'Choose one of the available_rewards of the customer card, or set active of the reward to true.',
    meaning: 'The reward is not active.',
  },
  card_expired: {
    status: 422,
    advice: 'Move expires_at of the card if it should go on.',
    meaning: 'The card has expired: it can be neither stamped nor redeemed.',
  },
  stamp_limit_reached: {
    status: 422,
    advice: 'Wait until the limit allows it again, or raise the limits of the card.',
    meaning: "One of the card's stamping limits was reached.",
  },
  customer_erased: {
    status: 422,
    advice: 'Add the person as a new customer if they come back.',
    meaning: 'The customer was erased: nothing about them can be changed any more.',
  },
  customer_merged: {
    status: 422,
    advice:
      'Send the request to the customer who goes on, whom the message names, or unmerge the two first.',
    meaning: 'The customer was merged into another one: the message names the one that goes on.',
  },
  card_unconfirmed: {
    status: 422,
    advice:
      'Ask whether the card is theirs, confirm it with POST …/customer_cards/by_code/:code/confirm, and redeem again.',
    meaning:
      'The code is that of a second card, which somebody got who signed up with the address of a customer. Nobody has confirmed yet that it is that customer.',
  },
  ambiguous: {
    status: 422,
    advice:
      'Merge the customers whom the message names if they are one person, or send fewer values.',
    meaning:
      'The e-mail address, phone number and references belong to different customers: the message names them.',
  },
} as const satisfies Record<string, ErrorEntry>;

/** Creates the rejection of a command to a customer or their card. */
export function createStampingError(
  issues: FieldIssues,
  code: keyof typeof STAMPING_ERRORS,
  resolution?: string,
): RejectedError {
  return new RejectedError(issues, code, resolution);
}
