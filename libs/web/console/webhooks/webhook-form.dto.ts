import type { Form } from '#platform/http/body-kinds.js';
import { EVERY_EVENT } from '#outbound/subscriptions/webhook-subscription.js';
import { ReplayDto } from '#outbound/subscriptions/webhook-delivery.dto.js';
import {
  CreateWebhookSubscriptionDto,
  RotateSecretDto,
} from '#outbound/subscriptions/webhook-subscription.dto.js';
import { defineForm, type ValuesOf } from '#web/pages/forms.js';

const MAX_LINES = 100;

export const webhookForm = defineForm(CreateWebhookSubscriptionDto, [
  'target_url',
  'description',
  'events',
  'payload_format',
  'card_ids',
  'location_ids',
  'personal_data',
  'signature',
]);

export const rotationForm = defineForm(RotateSecretDto, ['grace_seconds', 'signature']);

export const replayForm = defineForm(ReplayDto, ['from', 'to', 'types']);

/** The entered values, with headers one a line. @property scope `some`: only the ticked events */
export type WebhookFields = ValuesOf<typeof webhookForm> & Record<'scope' | 'headers', string>;

export const NO_WEBHOOK_FIELDS = toWebhookFields({ events: [EVERY_EVENT], headers: {} });

/** @param former headers, which stay where the form comes back after signing in: they are never kept */
export function readWebhookFields(form: Form, former = ''): WebhookFields {
  const { scope = 'all', headers = former } = form;
  return { ...webhookForm.read(form), scope, headers };
}

export function toWebhookFields(
  webhook: { events: string[]; headers: Readonly<Record<string, string>> } & Parameters<
    typeof webhookForm.toValues
  >[0],
): WebhookFields {
  return {
    ...webhookForm.toValues(webhook),
    scope: webhook.events.includes(EVERY_EVENT) ? 'all' : 'some',
    headers: Object.entries(webhook.headers)
      .map(([name, value]) => `${name}: ${value}`)
      .join('\n'),
  };
}

/** Renders the fields as the body of a request to the API, but for the signature, which never changes. */
export function toWebhookBody(values: WebhookFields): Record<string, unknown> {
  const { scope, headers, signature: _, ...fields } = values;
  return {
    ...fields,
    events: scope === 'some' ? fields.events : [EVERY_EVENT],
    headers: parseHeaderLines(headers),
    card_ids: fields.card_ids.length > 0 ? fields.card_ids : null,
    location_ids: fields.location_ids.length > 0 ? fields.location_ids : null,
  };
}

/** Parses headers, one a line. What is no header stays a text, which the field refuses. Null: no headers. */
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
