import { expect, it } from '@jest/globals';
import { toRequestFailure } from '#outbound/sending/guarded-agent.client.js';
import { getError } from '#outbound/sending/outcome.js';
import { getTranslations } from '#translations/translations.js';
import { renderLast } from './webhook-labels.js';

function renderInGerman(error: string): string {
  const attempt = {
    last_delivery_at: '2026-11-30T12:00:00.000Z',
    last_delivery_status: null,
    last_delivery_error: error,
  };
  return renderLast(attempt, getTranslations('de'), () => 'heute');
}

it.each([
  ['ENOTFOUND', 'Der Name der Adresse wurde nicht gefunden'],
  ['ECONNREFUSED', 'Die Verbindung wurde abgelehnt'],
  ['ECONNRESET', 'Die Verbindung wurde vor der Antwort geschlossen'],
  ['EHOSTUNREACH', 'Der Server ist nicht erreichbar'],
  ['ETIMEDOUT', 'Die Verbindung dauerte zu lange'],
  ['SELF_SIGNED_CERT_IN_CHAIN', 'Das TLS-Zertifikat ist selbst signiert'],
  ['CERT_HAS_EXPIRED', 'Das TLS-Zertifikat ist abgelaufen'],
  ['ERR_TLS_CERT_ALTNAME_INVALID', 'Das TLS-Zertifikat gilt für einen anderen Namen'],
  ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'Das TLS-Zertifikat ließ sich nicht prüfen'],
])('says in the language of the page why a delivery failed: %s', (code, text) => {
  const { error } = toRequestFailure(Object.assign(new Error('failed'), { code }));
  expect(renderInGerman(error)).toBe(`Fehlgeschlagen am heute: ${text}`);
});

it.each([
  [{ kind: 'responded', status: 500, retryAfter: null }, 'Antwort mit Status 500'],
  [
    { kind: 'responded', status: 301, retryAfter: null },
    'Antwort mit Status 301: Weiterleitungen wird nicht gefolgt',
  ],
  [
    { kind: 'failed', cause: 'timeout', error: 'No response within 10 seconds' },
    'Keine Antwort innerhalb von 10 Sekunden',
  ],
  [{ kind: 'blocked' }, 'Die Adresse führt nicht ins öffentliche Netz'],
  // Rare reasons have no translation.
  [{ kind: 'unrendered' }, 'The event could not be prepared for sending'],
] as const)('says so of outcomes without a failed connection: %o', (outcome, text) => {
  expect(renderInGerman(getError(outcome) ?? '')).toBe(`Fehlgeschlagen am heute: ${text}`);
});
