import { RejectedError } from '#platform/kernel/errors.js';
import type { HolderChannel } from './message-channel.js';
import { ISSUES } from '#translations/issues.js';

/**
 * - scheduled: begins at `sendAt`
 * - sending: it is addressed to customers, and sent
 * - sent: every message has its outcome
 */
export const ANNOUNCEMENT_STATES = ['draft', 'scheduled', 'sending', 'sent', 'cancelled'] as const;
export type AnnouncementState = (typeof ANNOUNCEMENT_STATES)[number];

/** Those of the store's customers whom an announcement is for; null: not narrowed by this. */
export type Audience = {
  cardId: number | null;
  minStamps: number | null;
  /** From 1 for January. */
  birthdayMonth: number | null;
  /** ISO 8601, since it is stored as JSON. */
  inactiveSince: string | null;
};

export type MessageContent = {
  title: string;
  text: string;
  /** In the order of preference. */
  channels: HolderChannel[];
};

export type AnnouncementAttributes = MessageContent & { audience: Audience };

/** A message that a store writes to its customers once. */
export type Announcement = AnnouncementAttributes & {
  id: number;
  accountId: number;
  state: AnnouncementState;
  sendAt: Date | null;
  createdAt: Date;
  updatedAt: Date;
  startedAt: Date | null;
  finishedAt: Date | null;
};

const MAX_DELAY_DAYS = 365;
const DAY_MS = 24 * 60 * 60_000;

export type AnnouncementChanges = Partial<MessageContent> & { audience?: Partial<Audience> };

/** @throws RejectedError once it has begun */
export function changeAnnouncement(
  current: Announcement,
  changes: AnnouncementChanges,
): Announcement {
  assertNotBegun(current.state);
  return { ...current, ...changes, audience: { ...current.audience, ...changes.audience } };
}

/**
 * Decides when an announcement is sent.
 * @param sendAt null: now
 * @returns undefined when it is scheduled for that time already
 * @throws RejectedError
 */
export function scheduleAnnouncement(
  current: Announcement,
  sendAt: Date | null,
  now: Date,
): Date | undefined {
  // A repeated request to send it now has nothing left to do.
  if (sendAt === null && ['sending', 'sent'].includes(current.state)) return undefined;
  assertNotBegun(current.state);
  const at = sendAt ?? now;
  if (at.getTime() > now.getTime() + MAX_DELAY_DAYS * DAY_MS) {
    throw new RejectedError({ send_at: [ISSUES.send_at_too_late({ days: MAX_DELAY_DAYS })] });
  }
  if (current.state !== 'scheduled') return at;
  const isSame =
    sendAt === null ? isDue(current, now) : sendAt.getTime() === current.sendAt?.getTime();
  return isSame ? undefined : at;
}

/** @returns whether it changes @throws RejectedError once it has begun */
export function cancelAnnouncement({ state }: Announcement): boolean {
  if (state === 'cancelled') return false;
  assertNotBegun(state);
  return true;
}

function isDue({ sendAt }: Announcement, now: Date): boolean {
  return sendAt !== null && sendAt.getTime() <= now.getTime();
}

function assertNotBegun(state: AnnouncementState): void {
  switch (state) {
    case 'draft':
    case 'scheduled':
      return;
    case 'cancelled':
      throw new RejectedError({ base: [ISSUES.announcement_cancelled] });
    case 'sending':
    case 'sent':
      throw new RejectedError({ base: [ISSUES.announcement_sent] });
  }
}
