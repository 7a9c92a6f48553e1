import { getTranslations, type Translations } from '#translations/translations.js';
import { FAILING_SECONDS } from '#outbound/subscriptions/webhook-delivery.js';

/**
 * What people are told about a subscription that cannot be delivered to: a day before it is disabled, and when it has
 * been. Never contains the whole URL, which may hold a key.
 */
export type FailingNotice = {
  kind: 'warning' | 'disabled';
  subscriptionId: number;
  accountId: number;
  store: string;
  description: string | null;
  targetUrl: string;
  /** A blocked address disables the subscription at once; anything else after three days of failing. */
  isBlocked: boolean;
  failingSince: Date | null;
  /** In a warning: when it will be disabled. */
  disabledAt: Date;
  lastStatus: number | null;
  lastError: string | null;
};

const WARNED_BEFORE_SECONDS = 24 * 3600;

/**
 * A subscription failing since `disable` or longer is disabled; one failing since `warn` or longer is warned about,
 * once per failing period.
 */
export function getFailingBounds(now: Date, timeScale: number): { warn: Date; disable: Date } {
  const ago = (seconds: number) => new Date(now.getTime() - (seconds * 1000) / timeScale);
  return { warn: ago(FAILING_SECONDS - WARNED_BEFORE_SECONDS), disable: ago(FAILING_SECONDS) };
}

/** Returns when a subscription that keeps failing will be disabled. */
export function getDisabledAt(failingSince: Date, timeScale: number): Date {
  return new Date(failingSince.getTime() + (FAILING_SECONDS * 1000) / timeScale);
}

/** @param locale a BCP 47 tag */
export function renderFailingMail(
  notice: FailingNotice,
  { locale, timeZone }: { locale: string; timeZone: string },
): { subject: string; text: string } {
  const { store, kind, isBlocked, failingSince, lastStatus, lastError } = notice;
  const t = getTranslations(locale).t.failingMail;
  const times = new Intl.DateTimeFormat(t.dates, {
    day: 'numeric',
    month: 'long',
    year: 'numeric',
    hour: '2-digit',
    minute: '2-digit',
    timeZone,
    timeZoneName: 'short',
  });
  const host = new URL(notice.targetUrl).host;
  const path = getPath(notice);
  const since = failingSince && times.format(failingSince);
  const disabledAt = times.format(notice.disabledAt);
  const isDisabled = kind === 'disabled';
  const lines = [
    isDisabled
      ? t.disabled.intro({ host, disabledAt, reason: describeReason(t, isBlocked, since) })
      : since === null
        ? t.warning.intro({ host, disabledAt })
        : t.warning.introSince({ host, since, disabledAt }),
    '',
    t.store({ name: store }),
    t.subscription({ name: formatName(notice) }),
    lastStatus === null ? t.noResponse : t.lastResponse({ status: `HTTP ${lastStatus}` }),
    ...(lastError === null ? [] : [t.lastError({ error: lastError })]),
    '',
    t.steps,
    isDisabled && isBlocked ? t.checkName : t.checkReceiver,
    t.test({ request: `POST ${path}/test` }),
    ...(isDisabled ? [t.enable({ request: `PATCH ${path} {"enabled": true}` })] : []),
    t[kind].sendAgain,
    `  ${formatReplay(notice)}`,
  ];
  return { subject: t[kind].subject({ store, host }), text: `${lines.join('\n')}\n` };
}

function describeReason(
  t: Translations['failingMail'],
  isBlocked: boolean,
  since: string | null,
): string {
  if (isBlocked) return t.blockedReason;
  return since === null ? t.failingReason : t.failingReasonSince({ since });
}

function formatName({ subscriptionId, description }: FailingNotice): string {
  return description === null ? String(subscriptionId) : `${subscriptionId} (${description})`;
}

function getPath({ accountId, subscriptionId }: FailingNotice): string {
  return `/api/v1/accounts/${accountId}/webhook_subscriptions/${subscriptionId}`;
}

function formatReplay(notice: FailingNotice): string {
  const from = (notice.failingSince ?? notice.disabledAt).toISOString();
  return `POST ${getPath(notice)}/replay {"from": "${from}"}`;
}
