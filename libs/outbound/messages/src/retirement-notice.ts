import { getReminderStart } from '#kernel/retirement.js';
import type { Mail } from './mail.js';

/** Users are notified when their tokens were used within this many days. */
export const RECENT_DAYS = 90;
/** How many of a user's tokens a mail names. */
export const MAX_NAMED_TOKENS = 10;

/** The reasons for a mail. A user gets one for each, and one reminder for each sunset date. */
export type Occasion = 'announced' | 'sunset' | 'reminder';

/** An announced retirement, and the notices that were sent of it. */
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

/** Finds the notice that is due now. Leaves out those for which it is too late, such as one after the sunset. */
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

/** Renders a notice. @param publicUrl this service's, without a trailing slash */
export function renderRetirementMail(
  occasion: Occasion,
  retirement: Pick<Retirement, 'version' | 'deprecatedAt' | 'sunsetAt'>,
  user: AffectedUser,
  publicUrl: string,
): Mail {
  const isGerman = /^de\b/i.test(user.locale ?? '');
  const translation = (isGerman ? renderGerman : renderEnglish)({
    ...retirement,
    occasion,
    user,
    publicUrl,
    host: new URL(publicUrl).host,
    day: (moment) => formatDay(isGerman ? 'de' : 'en-GB', moment),
  });
  return {
    to: user.email,
    subject: translation.subject,
    text: `${translation.lines.join('\n')}\n`,
  };
}

type Facts = Pick<Retirement, 'version' | 'deprecatedAt' | 'sunsetAt'> & {
  occasion: Occasion;
  user: AffectedUser;
  publicUrl: string;
  host: string;
  day: (moment: Date) => string;
};
type Translation = { subject: string; lines: string[] };

function renderEnglish({
  version,
  deprecatedAt,
  sunsetAt,
  occasion,
  user,
  ...at
}: Facts): Translation {
  const { publicUrl, host, day } = at;
  const end = sunsetAt
    ? [
        `Ends on: ${day(sunsetAt)}, ${formatTime(sunsetAt)} UTC`,
        '',
        `From then on every request to ${publicUrl}/api/${version} is refused with 410 and the code`,
        'version_sunset.',
      ]
    : ['Ends on: not decided yet. There will be another e-mail when it is.'];
  const what = sunsetAt ? `ends on ${day(sunsetAt)}` : 'is being retired';
  return {
    subject: `${occasion === 'reminder' ? 'Reminder: ' : ''}${host}: version ${version} of the API ${what}`,
    lines: [
      `Hello ${toSingleLine(user.name)},`,
      '',
      `version ${version} of the API at ${publicUrl} is being retired.`,
      '',
      `Deprecated from: ${day(deprecatedAt)}`,
      ...end,
      '',
      `API tokens of yours have used it in the last ${RECENT_DAYS} days:`,
      ...renderTokens(user, (name, used) => `- ${name}, last on ${day(used)}`, '- and others'),
      '',
      'What to do:',
      '- Find the programs that use these tokens, and move them to a newer version in time.',
      `- How versions end, and where things stand: ${publicUrl}/docs/versioning`,
      `- Your tokens: ${publicUrl}/app`,
    ],
  };
}

function renderGerman({
  version,
  deprecatedAt,
  sunsetAt,
  occasion,
  user,
  ...at
}: Facts): Translation {
  const { publicUrl, host, day } = at;
  const end = sunsetAt
    ? [
        `Endet am: ${day(sunsetAt)}, ${formatTime(sunsetAt)} UTC`,
        '',
        `Ab dann wird jede Anfrage an ${publicUrl}/api/${version} mit 410 und dem Code`,
        'version_sunset beantwortet.',
      ]
    : ['Endet am: noch nicht entschieden. Dann erhalten Sie noch eine Mail.'];
  const what = sunsetAt ? `endet am ${day(sunsetAt)}` : 'wird abgeschaltet';
  return {
    subject: `${occasion === 'reminder' ? 'Erinnerung: ' : ''}${host}: Version ${version} der API ${what}`,
    lines: [
      `Guten Tag ${toSingleLine(user.name)},`,
      '',
      `Version ${version} der API unter ${publicUrl} wird abgeschaltet.`,
      '',
      `Veraltet ab: ${day(deprecatedAt)}`,
      ...end,
      '',
      `In den letzten ${RECENT_DAYS} Tagen wurde sie mit diesen API-Tokens von Ihnen benutzt:`,
      ...renderTokens(user, (name, used) => `- ${name}, zuletzt am ${day(used)}`, '- und anderen'),
      '',
      'Was zu tun ist:',
      '- Finden Sie die Programme, die diese Tokens benutzen, und stellen Sie sie rechtzeitig um.',
      `- Wie Versionen enden und wie es steht: ${publicUrl}/docs/versioning`,
      `- Ihre Tokens: ${publicUrl}/app`,
    ],
  };
}

function renderTokens(
  { tokens }: AffectedUser,
  line: (name: string, usedAt: Date) => string,
  more: string,
): string[] {
  const named = tokens
    .slice(0, MAX_NAMED_TOKENS)
    .map(({ name, usedAt }) => line(toSingleLine(name), usedAt));
  return tokens.length > MAX_NAMED_TOKENS ? [...named, more] : named;
}

/** Keeps a name on its line, since people type names. */
function toSingleLine(name: string): string {
  return name.replaceAll(/[\s\p{Cc}]+/gu, ' ');
}

function formatDay(locale: string, moment: Date): string {
  return new Intl.DateTimeFormat(locale, { dateStyle: 'long', timeZone: 'UTC' }).format(moment);
}

function formatTime(moment: Date): string {
  return moment.toISOString().slice(11, 16);
}
