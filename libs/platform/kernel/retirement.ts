/** Dates of an API version that is being retired. */
export type RetirementDates = { deprecatedAt: Date; sunsetAt: Date | null };

/**
 * A stored announcement.
 * @property announcedAt when the retirement was first announced, whatever the dates were then
 */
export type Announcement = RetirementDates & { announcedAt: Date };

/** Tells what to do with the stored announcement when a process starts. */
export type RetirementStep =
  | { kind: 'none' | 'announce' | 'change' }
  | { kind: 'refuse'; reason: string };

/** Days between the reminder and the sunset. */
export const REMINDER_DAYS = 30;

const DAY_MS = 24 * 3_600_000;

/** Returns the earliest sunset: twelve months after the announcement (VER-13). */
export function getEarliestSunset(announcedAt: Date): Date {
  const earliest = new Date(announcedAt);
  earliest.setUTCFullYear(earliest.getUTCFullYear() + 1);
  return earliest;
}

export function getReminderStart(sunsetAt: Date): Date {
  return new Date(sunsetAt.getTime() - REMINDER_DAYS * DAY_MS);
}

/**
 * Compares the settings with the announcement. Moving the sunset later harms nobody, so only a first or an earlier
 * one needs 30 days' notice.
 * @param dates null: the settings have none
 * @param announcement undefined: nothing is announced
 */
export function decideRetirementStep(
  dates: RetirementDates | null,
  announcement: Announcement | undefined,
  now: Date,
): RetirementStep {
  if (dates === null) {
    return announcement
      ? { kind: 'refuse', reason: renderMissingDates(announcement) }
      : { kind: 'none' };
  }
  const reason = announcement
    ? findChangeError(dates, announcement, now)
    : findAnnouncementError(dates, now);
  if (reason !== undefined) return { kind: 'refuse', reason };
  if (!announcement) return { kind: 'announce' };
  const isSame =
    dates.deprecatedAt.getTime() === announcement.deprecatedAt.getTime() &&
    dates.sunsetAt?.getTime() === announcement.sunsetAt?.getTime();
  return { kind: isSame ? 'none' : 'change' };
}

/** Renders a day, or a time within one. */
export function renderDate(moment: Date): string {
  return moment.toISOString().replace(/T00:00:00\.000Z$|\.000(?=Z$)/, '');
}

function renderMissingDates({ announcedAt, deprecatedAt, sunsetAt }: Announcement): string {
  const end = sunsetAt ? ` and retired from ${renderDate(sunsetAt)}` : '';
  return `API_V1_DEPRECATION_DATE: v1 was announced on ${toDay(announcedAt)} as deprecated from ${renderDate(deprecatedAt)}${end}, so set these dates again, or withdraw them with inkpad retirement:withdraw.`;
}

function findAnnouncementError({ sunsetAt }: RetirementDates, now: Date): string | undefined {
  const earliest = getEarliestSunset(now);
  if (!sunsetAt || sunsetAt >= earliest) return undefined;
  return `API_V1_SUNSET_DATE: must be ${getNextDay(earliest)} or later, because this start is the first to announce that v1 is being retired, and callers get twelve months.`;
}

function findChangeError(
  { sunsetAt }: RetirementDates,
  announcement: Announcement,
  now: Date,
): string | undefined {
  if (!sunsetAt) return undefined;
  const earliest = getEarliestSunset(announcement.announcedAt);
  if (sunsetAt < earliest) {
    return `API_V1_SUNSET_DATE: must be ${getNextDay(earliest)} or later, twelve months after the retirement of v1 was announced on ${toDay(announcement.announcedAt)}.`;
  }
  if (announcement.sunsetAt && sunsetAt >= announcement.sunsetAt) return undefined;
  const noticeEndsAt = new Date(now.getTime() + REMINDER_DAYS * DAY_MS);
  return sunsetAt < noticeEndsAt
    ? `API_V1_SUNSET_DATE: must be ${getNextDay(noticeEndsAt)} or later, because a date that was not announced yet, or is earlier than announced, is told ${REMINDER_DAYS} days ahead.`
    : undefined;
}

function toDay(moment: Date): string {
  return moment.toISOString().slice(0, 10);
}

/** Returns the first whole day that is not before the time. */
function getNextDay(moment: Date): string {
  return toDay(new Date(Math.ceil(moment.getTime() / DAY_MS) * DAY_MS));
}
