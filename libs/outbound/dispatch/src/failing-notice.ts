import { FAILING_SECONDS } from '#subscriptions/webhook-delivery.js';

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

/** When a subscription that keeps failing will be disabled. */
export function getDisabledAt(failingSince: Date, timeScale: number): Date {
  return new Date(failingSince.getTime() + (FAILING_SECONDS * 1000) / timeScale);
}

/** @param locale a BCP 47 tag; languages without a text here get English */
export function renderFailingMail(
  notice: FailingNotice,
  { locale, timeZone }: { locale: string; timeZone: string },
): { subject: string; text: string } {
  const isGerman = /^de\b/i.test(locale);
  const format = new Intl.DateTimeFormat(isGerman ? 'de' : 'en-GB', {
    day: 'numeric',
    month: 'long',
    year: 'numeric',
    hour: '2-digit',
    minute: '2-digit',
    timeZone,
    timeZoneName: 'short',
  });
  const translation = (isGerman ? renderGerman : renderEnglish)(notice, (time) =>
    format.format(time),
  );
  return { subject: translation.subject, text: `${translation.lines.join('\n')}\n` };
}

type Translation = { subject: string; lines: string[] };

function renderEnglish(notice: FailingNotice, formatTime: (time: Date) => string): Translation {
  const { store, lastStatus, lastError } = notice;
  const host = getHost(notice);
  const since = notice.failingSince ? ` since ${formatTime(notice.failingSince)}` : '';
  const facts = [
    '',
    `Store: ${store}`,
    `Webhook subscription: ${formatName(notice)}`,
    `Last response: ${lastStatus === null ? 'none' : `HTTP ${lastStatus}`}`,
    ...(lastError === null ? [] : [`Last error: ${lastError}`]),
    '',
    'What to do:',
  ];
  if (notice.kind === 'warning') {
    return {
      subject: `${store}: webhooks to ${host} are failing`,
      lines: [
        `Nothing that was sent to ${host} has been accepted${since}.`,
        `If that goes on, the subscription will be disabled at ${formatTime(notice.disabledAt)}.`,
        ...facts,
        '- See that the receiver responds with a 2xx status within ten seconds.',
        `- Try it: POST ${getPath(notice)}/test`,
        '- Send what was missed again; the first success keeps the subscription enabled:',
        `  ${formatReplay(notice)}`,
      ],
    };
  }
  const why = notice.isBlocked
    ? 'the name of its URL leads to no public address'
    : `nothing was accepted${since}`;
  return {
    subject: `${store}: webhooks to ${host} were disabled`,
    lines: [
      `The webhook subscription to ${host} was disabled at ${formatTime(notice.disabledAt)}: ${why}.`,
      'Nothing is sent there any more.',
      ...facts,
      notice.isBlocked
        ? '- See that the name leads to the address of the receiver.'
        : '- See that the receiver responds with a 2xx status within ten seconds.',
      `- Try it: POST ${getPath(notice)}/test`,
      `- Enable it: PATCH ${getPath(notice)} {"enabled": true}`,
      '- Send what was missed again:',
      `  ${formatReplay(notice)}`,
    ],
  };
}

function renderGerman(notice: FailingNotice, formatTime: (time: Date) => string): Translation {
  const { store, lastStatus, lastError } = notice;
  const host = getHost(notice);
  const since = notice.failingSince ? ` seit ${formatTime(notice.failingSince)}` : '';
  const facts = [
    '',
    `Geschäft: ${store}`,
    `Webhook-Abonnement: ${formatName(notice)}`,
    `Letzte Antwort: ${lastStatus === null ? 'keine' : `HTTP ${lastStatus}`}`,
    ...(lastError === null ? [] : [`Letzter Fehler: ${lastError}`]),
    '',
    'Was zu tun ist:',
  ];
  if (notice.kind === 'warning') {
    return {
      subject: `${store}: Webhooks an ${host} kommen nicht an`,
      lines: [
        `Nichts, was an ${host} gesendet wurde, ist${since} angenommen worden.`,
        `Bleibt es dabei, wird das Abonnement am ${formatTime(notice.disabledAt)} abgeschaltet.`,
        ...facts,
        '- Sorgen Sie dafür, dass der Empfänger binnen zehn Sekunden mit 2xx antwortet.',
        `- Probieren Sie es aus: POST ${getPath(notice)}/test`,
        '- Senden Sie das Versäumte noch einmal; der erste Erfolg hält das Abonnement am Leben:',
        `  ${formatReplay(notice)}`,
      ],
    };
  }
  const why = notice.isBlocked
    ? 'Der Name in der URL führt zu keiner öffentlichen Adresse'
    : `Es wurde${since} nichts angenommen`;
  return {
    subject: `${store}: Webhooks an ${host} wurden abgeschaltet`,
    lines: [
      `Das Webhook-Abonnement an ${host} wurde am ${formatTime(notice.disabledAt)} abgeschaltet. ${why}.`,
      'Dorthin wird nichts mehr gesendet.',
      ...facts,
      notice.isBlocked
        ? '- Sorgen Sie dafür, dass der Name zur Adresse des Empfängers führt.'
        : '- Sorgen Sie dafür, dass der Empfänger binnen zehn Sekunden mit 2xx antwortet.',
      `- Probieren Sie es aus: POST ${getPath(notice)}/test`,
      `- Schalten Sie es wieder ein: PATCH ${getPath(notice)} {"enabled": true}`,
      '- Senden Sie das Versäumte noch einmal:',
      `  ${formatReplay(notice)}`,
    ],
  };
}

function getHost({ targetUrl }: FailingNotice): string {
  return new URL(targetUrl).host;
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
