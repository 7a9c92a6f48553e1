import type { Actor } from '#platform/kernel/aggregate.js';
import { findChanges } from '#platform/kernel/changes.js';
import { InvalidFieldsError, NotFoundError, RejectedError } from '#platform/kernel/errors.js';
import type { Issue } from '#platform/kernel/issues.js';
import type { HolderChannel } from '#outbound/messages/message-channel.js';
import { ISSUES } from '#translations/issues.js';

/**
 * - scheduled: begins at `sendAt`
 * - sending: it is addressed to customers, and sent
 * - sent: every message has its outcome
 */
export const ANNOUNCEMENT_STATES = ['draft', 'scheduled', 'sending', 'sent', 'cancelled'] as const;
export type AnnouncementState = (typeof ANNOUNCEMENT_STATES)[number];

/**
 * - stamps_away: a stamp brought a card within `threshold` stamps of a reward
 * - reward_unused: a reward was ready for `threshold` days, and was not redeemed
 * - birthday: it is the customer's birthday
 * - inactive: nothing has happened to the customer's cards for `threshold` days
 */
export const RULE_KINDS = ['stamps_away', 'reward_unused', 'birthday', 'inactive'] as const;
export type RuleKind = (typeof RULE_KINDS)[number];

/** Those of the store's customers whom an announcement is for; null: not narrowed by this. */
export type Audience = {
  cardId: number | null;
  minStamps: number | null;
  /** From 1 for January. */
  birthdayMonth: number | null;
  /** ISO 8601, since it is stored as JSON. */
  inactiveSince: string | null;
};

/** When a rule writes. */
export type Occasion = {
  /** Stays as it was created. */
  kind: RuleKind;
  /** Stamps, or days; null for birthdays. */
  threshold: number | null;
  /** Null: whichever card. */
  cardId: number | null;
};

export type MessageContent = {
  title: string;
  text: string;
  /** In the order of preference. */
  channels: HolderChannel[];
};

/** What differs between the campaigns that are sent once, to an audience, and those that are sent on an occasion. */
type Kinds = {
  announcement: { state: AnnouncementState; trigger: Audience };
  rule: { state: 'enabled' | 'disabled' | 'deleted'; trigger: Occasion };
};
export type CampaignKind = keyof Kinds;

export type CampaignAttributes<K extends CampaignKind> = MessageContent & Kinds[K];

/** A message that a store writes to its customers. */
export type Campaign<K extends CampaignKind = CampaignKind> = CampaignAttributes<K> & {
  kind: K;
  id: number;
  accountId: number;
  sendAt: Date | null;
  /** Who sent it. */
  actor: Actor | null;
  createdAt: Date;
  updatedAt: Date;
  startedAt: Date | null;
  finishedAt: Date | null;
};
export type Announcement = Campaign<'announcement'>;
export type MessageRule = Campaign<'rule'>;

/** Only a rule is enabled and disabled by a change. */
export type CampaignChanges<K extends CampaignKind> = Partial<MessageContent> & {
  trigger?: Partial<Kinds[K]['trigger']>;
} & (K extends 'rule' ? { state?: 'enabled' | 'disabled' } : unknown);

/** A campaign that is created or changed. @property details what the audit log says about that */
export type Decision<K extends CampaignKind> = { campaign: Campaign<K>; details: object };

const MAX_DELAY_DAYS = 365;
const DAY_MS = 24 * 60 * 60_000;

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

/** Tells apart the two kinds of campaigns. */
function isRule(campaign: Campaign): campaign is MessageRule {
  return campaign.kind === 'rule';
}

/** Creates a campaign that has not begun. @throws InvalidFieldsError when the threshold does not suit the kind of the rule */
export function createCampaign<K extends CampaignKind>(
  attributes: CampaignAttributes<K> & { kind: K; id: number; accountId: number },
  now: Date,
): Decision<K> {
  const campaign: Campaign<K> = {
    ...attributes,
    sendAt: null,
    actor: null,
    createdAt: now,
    updatedAt: now,
    startedAt: null,
    finishedAt: null,
  };
  const details = isRule(campaign) ? describeRule(campaign) : {};
  return { campaign, details };
}

function describeRule(rule: MessageRule): object {
  assertThreshold(rule.trigger);
  const { kind, threshold } = rule.trigger;
  return { kind, threshold, enabled: rule.state === 'enabled' };
}

/**
 * Changes what is named.
 * @returns undefined when nothing differs
 * @throws NotFoundError for a rule that was deleted
 * @throws InvalidFieldsError when the threshold does not suit the kind of the rule
 * @throws RejectedError once an announcement has begun
 */
export function changeCampaign<K extends CampaignKind>(
  current: Campaign<K>,
  { trigger, ...changes }: CampaignChanges<K>,
): Decision<K> | undefined {
  const campaign: Campaign<K> = {
    ...current,
    ...changes,
    trigger: { ...current.trigger, ...trigger },
  };
  if (isRule(campaign)) {
    assertNotDeleted(current);
    assertThreshold(campaign.trigger);
  } else assertNotBegun(current);
  const differences = findChanges(listAttributes(current), listAttributes(campaign));
  if (Object.keys(differences).length === 0) return undefined;
  return { campaign, details: { changes: differences } };
}

/** Lists what the audit log compares. */
function listAttributes(campaign: Campaign): Record<string, unknown> {
  const { title, text, channels, trigger } = campaign;
  const attributes = { title, text, channels, ...trigger };
  return isRule(campaign) ? { ...attributes, enabled: campaign.state === 'enabled' } : attributes;
}

/**
 * Decides when an announcement is sent.
 * @param sendAt null: now
 * @returns undefined when it is scheduled for that time already
 * @throws RejectedError
 */
export function scheduleAnnouncement(
  current: Announcement,
  { sendAt, actor }: { sendAt: Date | null; actor: Actor },
  now: Date,
): Decision<'announcement'> | undefined {
  // A repeated request to send it now has nothing left to do.
  if (sendAt === null && ['sending', 'sent'].includes(current.state)) return undefined;
  assertNotBegun(current);
  const at = sendAt ?? now;
  if (at.getTime() > now.getTime() + MAX_DELAY_DAYS * DAY_MS) {
    throw new RejectedError({ send_at: [ISSUES.send_at_too_late({ days: MAX_DELAY_DAYS })] });
  }
  const isSame =
    sendAt === null ? isDue(current, now) : sendAt.getTime() === current.sendAt?.getTime();
  if (current.state === 'scheduled' && isSame) return undefined;
  const campaign: Announcement = { ...current, state: 'scheduled', sendAt: at, actor };
  return { campaign, details: { send_at: at.toISOString() } };
}

/** @returns undefined when it was cancelled before @throws RejectedError once every message has its outcome */
export function cancelAnnouncement(
  current: Announcement,
  now: Date,
): Decision<'announcement'> | undefined {
  if (current.state === 'cancelled') return undefined;
  if (current.state !== 'sending') assertNotBegun(current);
  const campaign: Announcement = { ...current, state: 'cancelled', finishedAt: now };
  return { campaign, details: {} };
}

/** @throws NotFoundError for one that was deleted before */
export function deleteRule(current: MessageRule, now: Date): Decision<'rule'> {
  assertNotDeleted(current);
  const campaign: MessageRule = { ...current, state: 'deleted', finishedAt: now };
  return { campaign, details: {} };
}

function isDue({ sendAt }: Announcement, now: Date): boolean {
  return sendAt !== null && sendAt.getTime() <= now.getTime();
}

function assertNotDeleted({ state }: Campaign): void {
  if (state === 'deleted') throw new NotFoundError('Message rule');
}

function assertNotBegun({ state }: Campaign): void {
  if (state === 'cancelled') throw new RejectedError({ base: [ISSUES.announcement_cancelled] });
  if (state === 'draft' || state === 'scheduled') return;
  throw new RejectedError({ base: [ISSUES.announcement_sent] });
}

/** @throws InvalidFieldsError when the threshold does not suit the kind */
function assertThreshold({ kind, threshold }: Occasion): void {
  const issue = findThresholdIssue(kind, threshold);
  if (issue !== undefined) throw new InvalidFieldsError({ threshold: [issue] });
}

/** Finds why a threshold does not suit the kind of a rule. */
export function findThresholdIssue(kind: RuleKind, threshold: number | null): Issue | undefined {
  if (kind === 'birthday') {
    return threshold === null ? undefined : ISSUES.threshold_of_birthday;
  }
  const { max, issue } = THRESHOLDS[kind];
  return threshold !== null && threshold >= 1 && threshold <= max ? undefined : issue;
}
