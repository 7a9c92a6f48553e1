import { PUBLIC_EVENTS } from '#outbound/public-events/public-events.js';
import type { LastTest } from '#outbound/subscriptions/webhook-subscription.js';
import { getTranslations, type Localization } from '#translations/translations.js';
import type { Breadcrumb } from '#web/pages/navigation.js';

export type Choices = { value: string; text: string }[];
export type WebhookState = { state: string; mood: '' | 'good' | 'warn' | 'bad' };

type Webhook = {
  events: string[];
  enabled: boolean;
  disabled_reason: 'disabled_by_user' | 'failing' | 'blocked_address' | null;
};

type LastAttempt = {
  last_delivery_at: string | null;
  last_delivery_status: number | null;
  last_delivery_error: string | null;
};

type NamedWebhook = { id: number; description: string | null; target_url: string };

type Attempt = {
  attempt: number;
  kind: 'scheduled' | 'manual';
  at: string;
  status: number | null;
  error: string | null;
  duration_ms: number;
  response_excerpt: string | null;
};

/** An attempt of a delivery, as the page shows it. */
export type AttemptLine = {
  title: string;
  at: string;
  result: string;
  isGood: boolean;
  duration: string;
  excerpt: string | null;
};

/** Renders the name of a webhook: its description, or its host. */
export function renderWebhookName({ description, target_url: url }: NamedWebhook): string {
  return description ?? new URL(url).hostname;
}

/** Creates the breadcrumb of a page below that of a webhook. */
export function linkToWebhook(store: { id: number }, webhook: NamedWebhook): Breadcrumb {
  return { path: `${buildWebhooksPath(store)}/${webhook.id}`, text: renderWebhookName(webhook) };
}

export function buildWebhooksPath({ id }: { id: number }): string {
  return `/app/stores/${id}/webhooks`;
}

/** Lists the events to choose from, by what they mean. */
export function listEventChoices(localization: Localization): Choices {
  return PUBLIC_EVENTS.map((value) => ({ value, text: renderEventName(value, localization) }));
}

/** The usual reason, which has the status. */
const RESPONDED = /^Responded with (\d+)$/i;

const REDIRECTED = /^Responded with (\d+): redirects/;
const SLOW = /^No response within (\d+) seconds/;

/** Translates the reason of a failed attempt, which is stored in English; those that are rare stay so. */
function translateError(error: string, { t: { webhookPages } }: Localization): string {
  const { responded, redirected, slow, ...texts } = webhookPages.errors;
  const [, status = ''] = RESPONDED.exec(error) ?? REDIRECTED.exec(error) ?? [];
  if (status !== '') return REDIRECTED.test(error) ? redirected({ status }) : responded({ status });
  const [, seconds] = SLOW.exec(error) ?? [];
  if (seconds !== undefined) return slow({ seconds });
  const english = Object.entries(getTranslations('en').t.webhookPages.errors);
  const name = english.find(([, text]) => text === error)?.[0];
  return texts[name as keyof typeof texts] ?? error;
}

/** Renders what an event means; one without a text by its name in the API. */
export function renderEventName(event: string, { t: { webhookPages: t } }: Localization): string {
  if (event === '*') return t.allEvents;
  return Object.hasOwn(t.names, event) ? t.names[event as keyof typeof t.names] : event;
}

export function renderEventCount({ events }: Webhook, localization: Localization): string {
  const [only] = events;
  return events.length === 1 && only !== undefined
    ? renderEventName(only, localization)
    : localization.t.webhookPages.events({ count: events.length });
}

export function describeWebhookState(
  { enabled, disabled_reason: reason }: Webhook,
  { t: { webhookPages: t } }: Localization,
): WebhookState {
  if (enabled) return { state: t.states.on, mood: 'good' };
  if (reason === 'failing') return { state: t.states.failing, mood: 'bad' };
  return reason === 'blocked_address'
    ? { state: t.states.blocked, mood: 'bad' }
    : { state: t.states.off, mood: '' };
}

export function renderLast(
  webhook: LastAttempt,
  localization: Localization,
  minute: (time: Date) => string,
): string {
  const { webhookPages: t } = localization.t;
  const {
    last_delivery_at: at,
    last_delivery_status: status,
    last_delivery_error: error,
  } = webhook;
  if (at === null) return t.never;
  const when = minute(new Date(at));
  return error === null
    ? t.lastOk({ status: String(status ?? ''), when })
    : t.lastFailed({ reason: translateError(error, localization), when });
}

/** Renders the result of the latest test with its duration; empty when there was none. */
export function renderLastTest(
  test: LastTest | null,
  localization: Localization,
  minute: (time: Date) => string,
): string {
  if (test === null) return '';
  const { at, status, error, duration_ms: duration } = test;
  const last = { last_delivery_at: at, last_delivery_status: status, last_delivery_error: error };
  return `${renderLast(last, localization, minute)} · ${createDurationFormat(localization).format(duration)}`;
}

/** Renders the attempts of a delivery. */
export function renderAttempts(
  { attempts }: { attempts: Attempt[] },
  localization: Localization,
  minute: (time: Date) => string,
): AttemptLine[] {
  const { t: translations, locale } = localization;
  const t = translations.webhookPages.delivery;
  const numbers = new Intl.NumberFormat(locale);
  const duration = createDurationFormat(localization);
  return attempts.map(({ attempt, kind, at, status, error, duration_ms, response_excerpt }) => ({
    title: `${t.attempt} ${numbers.format(attempt)} (${t.kinds[kind]})`,
    at: minute(new Date(at)),
    // The usual reason only repeats the status.
    result: [
      ...(status === null ? [] : [t.status({ status: String(status) })]),
      ...(error === null || RESPONDED.test(error) ? [] : [translateError(error, localization)]),
    ].join(', '),
    isGood: error === null,
    duration: duration.format(duration_ms),
    excerpt: response_excerpt,
  }));
}

function createDurationFormat({ locale }: Localization): Intl.NumberFormat {
  return new Intl.NumberFormat(locale, {
    style: 'unit',
    unit: 'millisecond',
    unitDisplay: 'short',
  });
}
