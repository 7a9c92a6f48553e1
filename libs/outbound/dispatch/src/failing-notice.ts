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
  blocked: boolean;
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
export function failingBounds(now: Date, timeScale: number): { warn: Date; disable: Date } {
  const ago = (seconds: number) => new Date(now.getTime() - (seconds * 1000) / timeScale);
  return { warn: ago(FAILING_SECONDS - WARNED_BEFORE_SECONDS), disable: ago(FAILING_SECONDS) };
}

/** When a subscription that keeps failing will be disabled. */
export function disabledAfter(failingSince: Date, timeScale: number): Date {
  return new Date(failingSince.getTime() + (FAILING_SECONDS * 1000) / timeScale);
}

/** @param locale a BCP 47 tag; languages without a text here get English */
export function failingMail(
  notice: FailingNotice,
  { locale, timeZone }: { locale: string; timeZone: string },
): { subject: string; text: string } {
  const german = /^de\b/i.test(locale);
  const format = new Intl.DateTimeFormat(german ? 'de' : 'en-GB', {
    day: 'numeric',
    month: 'long',
    year: 'numeric',
    hour: '2-digit',
    minute: '2-digit',
    timeZone,
    timeZoneName: 'short',
  });
  const words = (german ? inGerman : inEnglish)(notice, (time) => format.format(time));
  return { subject: words.subject, text: `${words.lines.join('\n')}\n` };
}

type Words = { subject: string; lines: string[] };

function inEnglish(notice: FailingNotice, shown: (time: Date) => string): Words {
  const { store, lastStatus, lastError } = notice;
  const host = hostOf(notice);
  const since = notice.failingSince ? ` since ${shown(notice.failingSince)}` : '';
  const facts = [
    '',
    `Store: ${store}`,
    `Webhook subscription: ${nameOf(notice)}`,
    `Last answer: ${lastStatus === null ? 'none' : `HTTP ${lastStatus}`}`,
    ...(lastError === null ? [] : [`Last error: ${lastError}`]),
    '',
    'What to do:',
  ];
  if (notice.kind === 'warning') {
    return {
      subject: `${store}: webhooks to ${host} are failing`,
      lines: [
        `Nothing that was sent to ${host} has been accepted${since}.`,
        `If that goes on, the subscription will be disabled at ${shown(notice.disabledAt)}.`,
        ...facts,
        '- See that the receiver answers with a 2xx status within ten seconds.',
        `- Try it: POST ${pathOf(notice)}/test`,
        '- Send what was missed again; the first success keeps the subscription enabled:',
        `  ${replayOf(notice)}`,
      ],
    };
  }
  const why = notice.blocked
    ? 'the name of its URL leads to no public address'
    : `nothing was accepted${since}`;
  return {
    subject: `${store}: webhooks to ${host} were disabled`,
    lines: [
      `The webhook subscription to ${host} was disabled at ${shown(notice.disabledAt)}: ${why}.`,
      'Nothing is sent there any more.',
      ...facts,
      notice.blocked
        ? '- See that the name leads to the address of the receiver.'
        : '- See that the receiver answers with a 2xx status within ten seconds.',
      `- Try it: POST ${pathOf(notice)}/test`,
      `- Enable it: PATCH ${pathOf(notice)} {"enabled": true}`,
      '- Send what was missed again:',
      `  ${replayOf(notice)}`,
    ],
  };
}

function inGerman(notice: FailingNotice, shown: (time: Date) => string): Words {
  const { store, lastStatus, lastError } = notice;
  const host = hostOf(notice);
  const since = notice.failingSince ? ` seit ${shown(notice.failingSince)}` : '';
  const facts = [
    '',
    `Geschäft: ${store}`,
    `Webhook-Abonnement: ${nameOf(notice)}`,
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
        `Bleibt es dabei, wird das Abonnement am ${shown(notice.disabledAt)} abgeschaltet.`,
        ...facts,
        '- Sorgen Sie dafür, dass der Empfänger binnen zehn Sekunden mit 2xx antwortet.',
        `- Probieren Sie es aus: POST ${pathOf(notice)}/test`,
        '- Senden Sie das Versäumte noch einmal; der erste Erfolg hält das Abonnement am Leben:',
        `  ${replayOf(notice)}`,
      ],
    };
  }
  const why = notice.blocked
    ? 'Der Name in der URL führt zu keiner öffentlichen Adresse'
    : `Es wurde${since} nichts angenommen`;
  return {
    subject: `${store}: Webhooks an ${host} wurden abgeschaltet`,
    lines: [
      `Das Webhook-Abonnement an ${host} wurde am ${shown(notice.disabledAt)} abgeschaltet. ${why}.`,
      'Dorthin wird nichts mehr gesendet.',
      ...facts,
      notice.blocked
        ? '- Sorgen Sie dafür, dass der Name zur Adresse des Empfängers führt.'
        : '- Sorgen Sie dafür, dass der Empfänger binnen zehn Sekunden mit 2xx antwortet.',
      `- Probieren Sie es aus: POST ${pathOf(notice)}/test`,
      `- Schalten Sie es wieder ein: PATCH ${pathOf(notice)} {"enabled": true}`,
      '- Senden Sie das Versäumte noch einmal:',
      `  ${replayOf(notice)}`,
    ],
  };
}

function hostOf({ targetUrl }: FailingNotice): string {
  return new URL(targetUrl).host;
}

function nameOf({ subscriptionId, description }: FailingNotice): string {
  return description === null ? String(subscriptionId) : `${subscriptionId} (${description})`;
}

function pathOf({ accountId, subscriptionId }: FailingNotice): string {
  return `/api/v1/accounts/${accountId}/webhook_subscriptions/${subscriptionId}`;
}

function replayOf(notice: FailingNotice): string {
  const from = (notice.failingSince ?? notice.disabledAt).toISOString();
  return `POST ${pathOf(notice)}/replay {"from": "${from}"}`;
}
