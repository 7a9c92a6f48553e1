/** The two dates of a version of the API that is being retired. */
export type RetirementDates = { deprecatedAt: Date; sunsetAt: Date | null };

/** As the database has it. @property announcedAt when it was first announced to callers, whatever the dates were then */
export type Announcement = RetirementDates & { announcedAt: Date };

/** What is to become of the announcement when a process starts with its settings. */
export type RetirementStep =
  | { kind: 'none' | 'announce' | 'change' }
  | { kind: 'refuse'; why: string };

/** Everybody is told this long before a version ends. */
export const REMINDED_BEFORE_DAYS = 30;

const DAY_MS = 24 * 3_600_000;

/** At least twelve months lie between announcement and sunset (contract section 9). */
export function earliestSunset(announcedAt: Date): Date {
  const earliest = new Date(announcedAt);
  earliest.setUTCFullYear(earliest.getUTCFullYear() + 1);
  return earliest;
}

export function remindedFrom(sunsetAt: Date): Date {
  return new Date(sunsetAt.getTime() - REMINDED_BEFORE_DAYS * DAY_MS);
}

/**
 * Compares the settings with what callers were told. A later sunset takes nothing from anybody, so only an earlier one
 * and a first one are held to the 30 days.
 * @param wanted null: the settings have no dates
 * @param known undefined: nothing stands announced
 */
export function retirementStep(
  wanted: RetirementDates | null,
  known: Announcement | undefined,
  now: Date,
): RetirementStep {
  if (wanted === null) {
    return known ? { kind: 'refuse', why: missingDates(known) } : { kind: 'none' };
  }
  const why = known ? unfitChange(wanted, known, now) : unfitAnnouncement(wanted, now);
  if (why !== undefined) return { kind: 'refuse', why };
  if (!known) return { kind: 'announce' };
  const same =
    wanted.deprecatedAt.getTime() === known.deprecatedAt.getTime() &&
    wanted.sunsetAt?.getTime() === known.sunsetAt?.getTime();
  return { kind: same ? 'none' : 'change' };
}

/** A day, or a moment within one. */
export function shownDate(moment: Date): string {
  return moment.toISOString().replace(/T00:00:00\.000Z$|\.000(?=Z$)/, '');
}

function missingDates({ announcedAt, deprecatedAt, sunsetAt }: Announcement): string {
  const end = sunsetAt ? ` and retired from ${shownDate(sunsetAt)}` : '';
  return `API_V1_DEPRECATION_DATE: v1 was announced on ${dayOf(announcedAt)} as deprecated from ${shownDate(deprecatedAt)}${end}, so set these dates again, or withdraw them with npm run cli -- retirement:withdraw.`;
}

function unfitAnnouncement({ sunsetAt }: RetirementDates, now: Date): string | undefined {
  const earliest = earliestSunset(now);
  if (!sunsetAt || sunsetAt >= earliest) return undefined;
  return `API_V1_SUNSET_DATE: must be ${nextDay(earliest)} or later, because this start is the first to announce that v1 is being retired, and callers get twelve months.`;
}

function unfitChange(
  { sunsetAt }: RetirementDates,
  known: Announcement,
  now: Date,
): string | undefined {
  if (!sunsetAt) return undefined;
  const earliest = earliestSunset(known.announcedAt);
  if (sunsetAt < earliest) {
    return `API_V1_SUNSET_DATE: must be ${nextDay(earliest)} or later, twelve months after the retirement of v1 was announced on ${dayOf(known.announcedAt)}.`;
  }
  if (known.sunsetAt && sunsetAt >= known.sunsetAt) return undefined;
  const notice = new Date(now.getTime() + REMINDED_BEFORE_DAYS * DAY_MS);
  return sunsetAt < notice
    ? `API_V1_SUNSET_DATE: must be ${nextDay(notice)} or later, because a date that was not announced yet, or is earlier than announced, is told ${REMINDED_BEFORE_DAYS} days ahead.`
    : undefined;
}

function dayOf(moment: Date): string {
  return moment.toISOString().slice(0, 10);
}

/** The first whole day that is not before it. */
function nextDay(moment: Date): string {
  return dayOf(new Date(Math.ceil(moment.getTime() / DAY_MS) * DAY_MS));
}
