import type { Form } from '#platform/http/body-kinds.js';

const EVERY_EVENT = '*';
/** Of which the name is the name of a field, so that many can be chosen. */
const PREFIXES = { events: 'event:', cardIds: 'card:', locationIds: 'location:' } as const;
const MAX_LINES = 100;

/** The fields of the form about a webhook, as they were entered. */
export type WebhookFields = {
  targetUrl: string;
  description: string;
  hasEveryEvent: boolean;
  events: string[];
  payloadFormat: string;
  /** One a line. */
  headers: string;
  cardIds: string[];
  locationIds: string[];
  personalData: boolean;
  signature: string;
};

type Webhook = {
  target_url: string;
  description: string | null;
  events: string[];
  payload_format: string;
  headers: Readonly<Record<string, string>>;
  card_ids: number[] | null;
  location_ids: number[] | null;
  personal_data: boolean;
  signature: string;
};

export const NO_WEBHOOK_FIELDS: WebhookFields = {
  targetUrl: '',
  description: '',
  hasEveryEvent: true,
  events: [],
  payloadFormat: 'envelope',
  headers: '',
  cardIds: [],
  locationIds: [],
  personalData: true,
  signature: 'hmac',
};

export function readWebhookFields(form: Form): WebhookFields {
  return {
    targetUrl: (form['target_url'] ?? '').trim(),
    description: (form['description'] ?? '').trim(),
    hasEveryEvent: form['scope'] !== 'some',
    events: readChosen(form, PREFIXES.events),
    payloadFormat: form['payload_format'] ?? 'envelope',
    headers: form['headers'] ?? '',
    cardIds: readChosen(form, PREFIXES.cardIds),
    locationIds: readChosen(form, PREFIXES.locationIds),
    personalData: form['personal_data'] === 'yes',
    signature: form['signature'] ?? 'hmac',
  };
}

/** Reads the names behind a prefix of the fields that were ticked. */
export function readChosen(form: Form, prefix: string): string[] {
  return Object.keys(form)
    .filter((name) => name.startsWith(prefix))
    .map((name) => name.slice(prefix.length));
}

export function toWebhookFields(webhook: Webhook): WebhookFields {
  const hasEveryEvent = webhook.events.includes(EVERY_EVENT);
  return {
    targetUrl: webhook.target_url,
    description: webhook.description ?? '',
    hasEveryEvent,
    events: hasEveryEvent ? [] : webhook.events,
    payloadFormat: webhook.payload_format,
    headers: Object.entries(webhook.headers)
      .map(([name, value]) => `${name}: ${value}`)
      .join('\n'),
    cardIds: (webhook.card_ids ?? []).map(String),
    locationIds: (webhook.location_ids ?? []).map(String),
    personalData: webhook.personal_data,
    signature: webhook.signature,
  };
}

/** Renders the fields as the body of a request to the API. */
export function toWebhookBody(fields: WebhookFields): Record<string, unknown> {
  return {
    target_url: fields.targetUrl,
    description: fields.description === '' ? null : fields.description,
    events: fields.hasEveryEvent ? [EVERY_EVENT] : fields.events,
    payload_format: fields.payloadFormat,
    headers: parseHeaderLines(fields.headers),
    card_ids: fields.cardIds.length > 0 ? fields.cardIds : null,
    location_ids: fields.locationIds.length > 0 ? fields.locationIds : null,
    personal_data: fields.personalData,
  };
}

/** Parses headers, one a line. What is no header stays a text, which the field refuses. Null: there is none. */
function parseHeaderLines(text: string): Record<string, string> | string | null {
  const lines = text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
  if (lines.length === 0) return null;
  const headers = lines
    .slice(0, MAX_LINES)
    .map((line) => /^([^:\s]+)\s*:\s*(.+)$/.exec(line)?.slice(1, 3) ?? []);
  const names = headers.map(([name = '']) => name.toLowerCase());
  const areHeaders = headers.every(({ length }) => length === 2);
  // An object would hide that a name occurs twice.
  if (!areHeaders || new Set(names).size < names.length) return text;
  return Object.fromEntries(headers) as Record<string, string>;
}
