import { getReminderStart } from '#platform/kernel/retirement.js';
import { getTranslations } from '#translations/translations.js';
import type { Mail } from './mail.js';

/** Users are notified when their tokens were used within this many days. */
export const RECENT_DAYS = 90;
/** How many of a user's tokens a mail names. */
export const MAX_NAMED_TOKENS = 10;

/** The reasons for a mail. A user gets one for each, and one reminder for each sunset date. */
export type Occasion = 'announced' | 'sunset' | 'reminder';

/** An announced retirement, and the announcements that were sent of it. */
export type Retirement = {
  id: number;
  version: string;
  deprecatedAt: Date;
  sunsetAt: Date | null;
  notifiedAt: Date | null;
  sunsetNotifiedAt: Date | null;
  remindedSunsetAt: Date | null;
};

/** @property tokens used lately, the latest first, up to one more than a mail names */
export type AffectedUser = {
  email: string;
  name: string;
  /** The locale of the first store, BCP 47; null without a store. */
  locale: string | null;
  tokens: { name: string; usedAt: Date }[];
};

/** Finds the announcement that is due now. Leaves out those for which it is too late, such as one after the sunset. */
export function findDueOccasion(retirement: Retirement, now: Date): Occasion | undefined {
  const { sunsetAt, notifiedAt, sunsetNotifiedAt, remindedSunsetAt } = retirement;
  if (sunsetAt) {
    if (now >= sunsetAt) return undefined;
    const isReminded = remindedSunsetAt?.getTime() === sunsetAt.getTime();
    if (now >= getReminderStart(sunsetAt)) return isReminded ? undefined : 'reminder';
  }
  if (!notifiedAt) return 'announced';
  return sunsetAt && !sunsetNotifiedAt ? 'sunset' : undefined;
}

/** Renders an announcement. @param publicUrl this service's, without a trailing slash */
export function renderRetirementMail(
  occasion: Occasion,
  retirement: Pick<Retirement, 'version' | 'deprecatedAt' | 'sunsetAt'>,
  user: AffectedUser,
  publicUrl: string,
): Mail {
  const { version, deprecatedAt, sunsetAt } = retirement;
  const { email, name, locale, tokens } = user;
  const t = getTranslations(locale ?? 'en').t.retirementMail;
  const days = new Intl.DateTimeFormat(t.dates, { dateStyle: 'long', timeZone: 'UTC' });
  const { host } = new URL(publicUrl);
  const subject = sunsetAt
    ? t.subject({ host, version, end: days.format(sunsetAt) })
    : t.subjectWithoutEnd({ host, version });
  const lines = [
    t.greeting({ name: toSingleLine(name) }),
    '',
    t.intro({ version, url: publicUrl }),
    '',
    t.deprecatedFrom({ day: days.format(deprecatedAt) }),
    sunsetAt
      ? t.end({
          day: days.format(sunsetAt),
          time: formatTime(sunsetAt),
          url: `${publicUrl}/api/${version}`,
        })
      : t.noEnd,
    '',
    t.tokens({ days: RECENT_DAYS }),
    ...tokens
      .slice(0, MAX_NAMED_TOKENS)
      .map(({ name, usedAt }) => t.token({ name: toSingleLine(name), day: days.format(usedAt) })),
    ...(tokens.length > MAX_NAMED_TOKENS ? [t.otherTokens] : []),
    '',
    t.steps({ url: publicUrl }),
  ];
  return {
    to: email,
    subject: occasion === 'reminder' ? t.reminder({ subject }) : subject,
    text: `${lines.join('\n')}\n`,
  };
}

/** Keeps a name on its line, since people type names. */
function toSingleLine(name: string): string {
  return name.replaceAll(/[\s\p{Cc}]+/gu, ' ');
}

function formatTime(moment: Date): string {
  return moment.toISOString().slice(11, 16);
}
