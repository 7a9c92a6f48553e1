import { getTranslations, type Translations } from '#translations/translations.js';
import { FAILING_SECONDS } from '#outbound/subscriptions/webhook-delivery.js';

/**
 * What people are told about a subscription that cannot be delivered to: a day before it is disabled, and when it has
 * been. Never contains the whole URL, which may hold a key.
 */
export type FailureReport = {
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
export function renderFailureMail(
  report: FailureReport,
  { locale, timeZone }: { locale: string; timeZone: string },
): { subject: string; text: string } {
  const { store, kind, isBlocked, failingSince, lastStatus, lastError } = report;
  const t = getTranslations(locale).t.failureMail;
  const times = new Intl.DateTimeFormat(t.dates, {
    day: 'numeric',
    month: 'long',
    year: 'numeric',
    hour: '2-digit',
    minute: '2-digit',
    timeZone,
    timeZoneName: 'short',
  });
  const host = new URL(report.targetUrl).host;
  const path = getPath(report);
  const since = failingSince && times.format(failingSince);
  const disabledAt = times.format(report.disabledAt);
  const isDisabled = kind === 'disabled';
  const lines = [
    isDisabled
      ? t.disabled.intro({ host, disabledAt, reason: describeReason(t, isBlocked, since) })
      : since === null
        ? t.warning.intro({ host, disabledAt })
        : t.warning.introSince({ host, since, disabledAt }),
    '',
    t.store({ name: store }),
    t.subscription({ name: formatName(report) }),
    lastStatus === null ? t.noResponse : t.lastResponse({ status: `HTTP ${lastStatus}` }),
    ...(lastError === null ? [] : [t.lastError({ error: lastError })]),
    '',
    t.steps,
    isDisabled && isBlocked ? t.checkName : t.checkReceiver,
    t.test({ request: `POST ${path}/test` }),
    ...(isDisabled ? [t.enable({ request: `PATCH ${path} {"enabled": true}` })] : []),
    t[kind].sendAgain,
    `  ${formatReplay(report)}`,
  ];
  return { subject: t[kind].subject({ store, host }), text: `${lines.join('\n')}\n` };
}

function describeReason(
  t: Translations['failureMail'],
  isBlocked: boolean,
  since: string | null,
): string {
  if (isBlocked) return t.blockedReason;
  return since === null ? t.failingReason : t.failingReasonSince({ since });
}

function formatName({ subscriptionId, description }: FailureReport): string {
  return description === null ? String(subscriptionId) : `${subscriptionId} (${description})`;
}

function getPath({ accountId, subscriptionId }: FailureReport): string {
  return `/api/v1/accounts/${accountId}/webhook_subscriptions/${subscriptionId}`;
}

function formatReplay(report: FailureReport): string {
  const from = (report.failingSince ?? report.disabledAt).toISOString();
  return `POST ${getPath(report)}/replay {"from": "${from}"}`;
}
