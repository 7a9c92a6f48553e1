import { InvalidFieldsError } from '#platform/kernel/errors.js';
import { findMomentOfDay, getLocalDay } from '#platform/kernel/zoned-time.js';
import type { MessageContent } from './announcement.js';
import { ISSUES } from '#translations/issues.js';
import type { Issue } from '#platform/kernel/issues.js';

/**
 * - stamps_away: a stamp brought a card within `threshold` stamps of a reward
 * - reward_unused: a reward was ready for `threshold` days, and was not redeemed
 * - birthday: it is the customer's birthday
 * - inactive: nothing has happened to the customer's cards for `threshold` days
 */
export const RULE_KINDS = ['stamps_away', 'reward_unused', 'birthday', 'inactive'] as const;
export type RuleKind = (typeof RULE_KINDS)[number];

export type RuleAttributes = MessageContent & {
  /** Stamps, or days; null for birthdays. */
  threshold: number | null;
  /** Null: whichever card. */
  cardId: number | null;
  enabled: boolean;
};

/** The kind stays. */
export type NewRule = RuleAttributes & { kind: RuleKind };

/** A rule by which a store writes to customers. */
export type MessageRule = NewRule & {
  id: number;
  accountId: number;
  createdAt: Date;
  updatedAt: Date;
};

const THRESHOLDS: Record<Exclude<RuleKind, 'birthday'>, { max: number; issue: Issue }> = {
  stamps_away: { max: 10, issue: ISSUES.threshold_stamps_away({ max: 10 }) },
  reward_unused: { max: 365, issue: ISSUES.threshold_reward_unused({ max: 365 }) },
  inactive: { max: 730, issue: ISSUES.threshold_inactive({ max: 730 }) },
};

/**
 * The days for which an occasion that was used may be found again. A higher threshold finds the same event later, a birthday
 * that was corrected comes once more in its year, and the counts of a rule are those of 30 days.
 */
export const OCCASION_DAYS: Record<RuleKind, number> = {
  stamps_away: 30,
  reward_unused: THRESHOLDS.reward_unused.max,
  birthday: 367,
  inactive: THRESHOLDS.inactive.max,
};

/** @throws InvalidFieldsError when the threshold does not suit the kind */
export function assertThreshold(kind: RuleKind, threshold: number | null): void {
  const error = findThresholdIssue(kind, threshold);
  if (error !== undefined) throw new InvalidFieldsError({ threshold: [error] });
}

function findThresholdIssue(kind: RuleKind, threshold: number | null): Issue | undefined {
  if (kind === 'birthday') {
    return threshold === null ? undefined : ISSUES.threshold_of_birthday;
  }
  const { max, issue } = THRESHOLDS[kind];
  return threshold !== null && threshold >= 1 && threshold <= max ? undefined : issue;
}

/** Changes what is named. @throws InvalidFieldsError */
export function changeRule(current: MessageRule, changes: Partial<RuleAttributes>): MessageRule {
  const changed = { ...current, ...changes };
  assertThreshold(changed.kind, changed.threshold);
  return changed;
}

/** A day on which birthdays are celebrated. @property birthday with the year of the celebration */
export type Celebration = { birthday: string; at: Date };

/**
 * Lists the birthdays of the days that begin after a time, up to another. Those of 29 February are celebrated on the
 * 28th in other years.
 */
export function listCelebrations(from: Date, to: Date, timeZone: string): Celebration[] {
  const celebrations: Celebration[] = [];
  for (let day = getLocalDay(timeZone, from.getTime()); ; day = getNextDay(day)) {
    const at = new Date(findMomentOfDay(day, 'start', timeZone));
    if (at > to) return celebrations;
    if (at > from) {
      celebrations.push(...listBirthdaysOn(day).map((birthday) => ({ birthday, at })));
    }
  }
}

function listBirthdaysOn(day: string): string[] {
  const [year = ''] = day.split('-');
  const isLeapDay = getNextDay(`${year}-02-28`) === `${year}-02-29`;
  return day === `${year}-02-28` && !isLeapDay ? [day, `${year}-02-29`] : [day];
}

function getNextDay(day: string): string {
  return new Date(Date.parse(`${day}T00:00:00Z`) + DAY_MS).toISOString().slice(0, 10);
}

const DAY_MS = 24 * 60 * 60_000;
