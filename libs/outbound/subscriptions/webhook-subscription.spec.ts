import { describe, expect, it } from '@jest/globals';
import { randomBytes } from 'node:crypto';
import { InvalidFieldsError, RejectedError } from '#platform/kernel/errors.js';
import { readBody } from '#platform/http/dtos.js';
import {
  CreateWebhookSubscriptionDto,
  toSubscriptionAttributes,
} from './webhook-subscription.dto.js';
import { PUBLIC_ONLY, findTargetUrlIssue } from '#outbound/sending/target-address.js';
import {
  toAuditedChanges,
  changeSubscription,
  findGap,
  getOnlyEvent,
  isSubscribedTo,
  type WebhookSubscription,
} from './webhook-subscription.js';
import { WebhookSecrets } from '#outbound/sending/webhook-secrets.service.js';
import { formatSigningSecret } from '#outbound/sending/webhook-signature.js';
import { Keyring, createMasterKey } from '#platform/kernel/keyring.js';
import { MasterKeys } from '#platform/database/master-keys.js';

const TARGET_URL = 'https://example.com/hooks';

function read(body: object) {
  try {
    const input = readBody(CreateWebhookSubscriptionDto, { target_url: TARGET_URL, ...body });
    // The rule that the commands apply, because it depends on the settings.
    if (findTargetUrlIssue(input.target_url, PUBLIC_ONLY) !== undefined) return ['target_url'];
    return toSubscriptionAttributes(input);
  } catch (error) {
    if (error instanceof InvalidFieldsError) return Object.keys(error.errors);
    throw error;
  }
}

describe('the body of a new subscription', () => {
  it.each([
    [
      'several events',
      { events: ['stamp.earned', 'reward.redeemed'] },
      ['stamp.earned', 'reward.redeemed'],
    ],
    ['one event', { event: 'stamp.earned' }, ['stamp.earned']],
    ['every event', { events: ['*'] }, ['*']],
    ['event *', { event: '*' }, ['*']],
    [
      'event and events with the same name',
      { event: 'stamp.earned', events: ['stamp.earned'] },
      ['stamp.earned'],
    ],
    ['duplicates', { events: ['stamp.earned', 'stamp.earned'] }, ['stamp.earned']],
    ['* twice', { events: ['*', '*'] }, ['*']],
    ['event null', { event: null, events: ['stamp.earned'] }, ['stamp.earned']],
  ])('accepts %s', (_case, body, events) => {
    expect(read(body)).toEqual({
      events,
      targetUrl: TARGET_URL,
      description: null,
      payloadFormat: 'envelope',
      headers: {},
      cardIds: null,
      locationIds: null,
      personalData: true,
      signature: 'hmac',
      enabled: true,
    });
  });

  it.each([
    ['neither event nor events', {}, ['events']],
    ['no events', { events: [] }, ['events']],
    ['an unknown name in events', { events: ['stamp.lost'] }, ['events']],
    ['* beside others', { events: ['*', 'stamp.earned'] }, ['events']],
    ['events as text', { events: 'stamp.earned' }, ['events']],
    ['webhook.test', { events: ['webhook.test'] }, ['events']],
    ['an unknown event', { event: 'stamp.lost' }, ['event']],
    ['event and events with different names', { event: 'stamp.earned', events: ['*'] }, ['event']],
    ['the flat format with *', { event: '*', payload_format: 'flat' }, ['payload_format']],
    [
      'the flat format with two events',
      { events: ['stamp.earned', 'stamp.removed'], payload_format: 'flat' },
      ['payload_format'],
    ],
    ['an unknown format', { event: '*', payload_format: 'xml' }, ['payload_format']],
    ['a reserved header', { event: '*', headers: { Host: 'x' } }, ['headers']],
    ['headers as a list', { event: '*', headers: [] }, ['headers']],
    ['no card ids', { event: '*', card_ids: [] }, ['card_ids']],
    ['an id that is none', { event: '*', location_ids: [1, 'x'] }, ['location_ids']],
    [
      '101 ids',
      { event: '*', card_ids: Array.from({ length: 101 }, (_, i) => i + 1) },
      ['card_ids'],
    ],
    ['an unknown signature', { event: '*', signature: 'rsa' }, ['signature']],
    ['a long description', { event: '*', description: 'x'.repeat(256) }, ['description']],
    ['a private target', { event: '*', target_url: 'https://10.0.0.1' }, ['target_url']],
    ['no target', { event: '*', target_url: null }, ['target_url']],
    [
      'several invalid fields',
      { target_url: 'x', payload_format: 'xml' },
      ['target_url', 'payload_format', 'events'],
    ],
  ])('refuses %s', (_case, body, fields) => {
    expect(read(body)).toEqual(fields);
  });

  it('accepts the flat format with one event, and a subscription that is not enabled yet', () => {
    expect(read({ events: ['stamp.earned'], payload_format: 'flat', enabled: 0 })).toMatchObject({
      payloadFormat: 'flat',
      enabled: false,
    });
  });
});

it('reads ids that are sent as strings, each once', () => {
  expect(read({ event: '*', card_ids: ['7', 7, 8], location_ids: null })).toMatchObject({
    cardIds: [7, 8],
    locationIds: null,
  });
});

it('getOnlyEvent returns the event when there is exactly one, and isSubscribedTo accepts *', () => {
  expect(getOnlyEvent(['stamp.earned'])).toBe('stamp.earned');
  expect(getOnlyEvent(['stamp.earned', 'stamp.removed'])).toBeNull();
  expect(getOnlyEvent(['*'])).toBeNull();
  expect(isSubscribedTo(['*'], 'stamp.earned')).toBe(true);
  expect(isSubscribedTo(['stamp.removed'], 'stamp.earned')).toBe(false);
});

it('WebhookSecrets opens a sealed secret for its own subscription only', () => {
  const key = createMasterKey(randomBytes(32));
  const secrets = new WebhookSecrets(MasterKeys.withKeys(new Keyring([key], key), new Map()));
  const secret = formatSigningSecret(Buffer.alloc(32, 7));
  expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
  const sealedSecret = secrets.seal(1, secret);
  expect(sealedSecret.includes(secret)).toBe(false);
  expect(secrets.open(1, sealedSecret)).toBe(secret);
  expect(secrets.open(2, sealedSecret)).toBeNull();

  const headers = { 'X-Api-Key': 'k3y' };
  const sealedHeaders = secrets.sealHeaders(1, headers);
  expect(sealedHeaders?.includes('k3y')).toBe(false);
  expect(secrets.openHeaders(1, sealedHeaders)).toEqual(headers);
  expect(secrets.openHeaders(2, sealedHeaders)).toBeNull();
  expect(secrets.openHeaders(1, sealedSecret)).toBeNull();
  expect(secrets.sealHeaders(1, {})).toBeNull();
  expect(secrets.openHeaders(1, null)).toEqual({});
});

describe('changeSubscription', () => {
  const then = new Date('2026-03-01T10:00:00Z');
  const now = new Date('2026-03-02T10:00:00Z');
  const enabledSubscription: WebhookSubscription = {
    id: 1,
    accountId: 1,
    events: ['stamp.earned'],
    targetUrl: TARGET_URL,
    description: null,
    payloadFormat: 'flat',
    headers: { 'X-Api-Key': 'k3y' },
    cardIds: null,
    locationIds: null,
    personalData: true,
    signature: 'hmac',
    publicKey: null,
    enabled: true,
    disabledAt: null,
    disabledReason: null,
    lastDeliveryAt: null,
    lastDeliveryStatus: null,
    lastDeliveryError: null,
    createdAt: then,
    updatedAt: then,
  };
  const disabledSubscription: WebhookSubscription = {
    ...enabledSubscription,
    enabled: false,
    disabledAt: then,
    disabledReason: 'failing',
  };

  it.each([
    ['nothing', {}],
    ['the same values', { events: ['stamp.earned'], targetUrl: TARGET_URL, enabled: true }],
    ['the same headers', { headers: { 'X-Api-Key': 'k3y' } }],
    ['a hidden value', { headers: { 'X-Api-Key': '•••' } }],
    ['the same signature', { signature: 'hmac' as const }],
  ])('returns undefined for %s', (_case, changes) => {
    expect(changeSubscription(enabledSubscription, changes, now)).toBeUndefined();
  });

  it('changes one setting and keeps the rest', () => {
    expect(changeSubscription(enabledSubscription, { description: 'till' }, now)).toEqual({
      subscription: { ...enabledSubscription, description: 'till', updatedAt: now },
      switchedTo: null,
    });
  });

  it('pauses an enabled subscription', () => {
    expect(changeSubscription(enabledSubscription, { enabled: false }, now)).toEqual({
      subscription: {
        ...enabledSubscription,
        enabled: false,
        disabledAt: now,
        disabledReason: 'disabled_by_user',
        updatedAt: now,
      },
      switchedTo: 'off',
    });
  });

  it('resumes a disabled subscription, and keeps its reason when it is paused again', () => {
    expect(changeSubscription(disabledSubscription, { enabled: true }, now)).toEqual({
      subscription: { ...enabledSubscription, updatedAt: now },
      switchedTo: 'on',
    });
    expect(changeSubscription(disabledSubscription, { enabled: false }, now)).toBeUndefined();
  });

  it('replaces headers, and keeps the values that are hidden', () => {
    const headers = { 'x-api-key': '•••', Authorization: 'Bearer new' };
    expect(changeSubscription(enabledSubscription, { headers }, now)?.subscription.headers).toEqual(
      {
        'x-api-key': 'k3y',
        Authorization: 'Bearer new',
      },
    );
    expect(
      changeSubscription(enabledSubscription, { headers: {} }, now)?.subscription.headers,
    ).toEqual({});
  });

  it.each([
    ['a hidden value of a header that is new', enabledSubscription, 'X-Other'],
    [
      'a hidden value that cannot be decrypted',
      { ...enabledSubscription, headers: { 'X-Api-Key': '•••' } },
      'X-Api-Key',
    ],
  ])('refuses %s', (_case, subscription, name) => {
    const change = () => changeSubscription(subscription, { headers: { [name]: '•••' } }, now);
    expect(change).toThrow(RejectedError);
  });

  it('refuses another signature, which takes another secret', () => {
    const change = () => changeSubscription(enabledSubscription, { signature: 'ed25519' }, now);
    expect(change).toThrow(RejectedError);
  });

  it('checks the result, not each field alone', () => {
    expect(() => changeSubscription(enabledSubscription, { events: ['*'] }, now)).toThrow(
      RejectedError,
    );
    expect(
      changeSubscription(enabledSubscription, { events: ['*'], payloadFormat: 'envelope' }, now)
        ?.subscription,
    ).toMatchObject({ events: ['*'], payloadFormat: 'envelope' });
  });
});

it('findGap begins before the subscription was disabled, but not before it was created', () => {
  const disabledAt = new Date('2026-03-01T10:00:00Z');
  const now = new Date('2026-03-02T10:00:00Z');
  const createdAt = new Date('2026-01-01T10:00:00Z');
  const to = new Date('2026-03-02T10:00:10Z');
  expect(findGap({ disabledAt, createdAt }, now)).toEqual({
    from: new Date('2026-03-01T09:59:50Z'),
    to,
  });
  expect(findGap({ disabledAt, createdAt: disabledAt }, now)).toEqual({ from: disabledAt, to });
});

describe('toAuditedChanges', () => {
  const before = {
    targetUrl: 'https://user:pass@old.example:8443/hook',
    events: ['stamp.earned'],
    description: null,
    payloadFormat: 'envelope' as const,
    headers: { 'X-Api-Key': 'k3y' },
    cardIds: null,
    locationIds: null,
    personalData: true,
    signature: 'hmac' as const,
    enabled: true,
  };

  it.each([
    [
      'another host',
      'https://new.example/hook',
      'https://old.example:8443/…',
      'https://new.example/…',
    ],
    [
      'another query',
      'https://old.example:8443/hook?key=1',
      'https://old.example:8443/…',
      'https://old.example:8443/…',
    ],
    [
      'another host and path',
      'http://[2001:db8::1]/a%20b/?q',
      'https://old.example:8443/…',
      'http://[2001:db8::1]/…',
    ],
  ])('contains only the host of a URL: %s', (_, targetUrl, from, to) => {
    expect(toAuditedChanges(before, { ...before, targetUrl })).toEqual({
      target_url: { from, to },
    });
  });

  it('says that a URL has changed, but not how', () => {
    const first = { ...before, targetUrl: 'https://a.example/?key=1' };
    const maskedUrl = 'https://a.example/…';
    expect(toAuditedChanges(first, { ...first, targetUrl: 'https://a.example/?key=2' })).toEqual({
      target_url: { from: maskedUrl, to: maskedUrl },
    });
  });

  it('contains the names of headers, never a value', () => {
    const after = { ...before, headers: { 'X-Api-Key': 'other', Authorization: 'Bearer new' } };
    const names = ['X-Api-Key', 'Authorization'];
    expect(toAuditedChanges(before, after)).toEqual({
      headers: { from: ['X-Api-Key'], to: names },
    });
    const rotated = { ...before, headers: { 'X-Api-Key': 'other' } };
    expect(toAuditedChanges(before, rotated)).toEqual({
      headers: { from: ['X-Api-Key'], to: ['X-Api-Key'] },
    });
  });

  it('contains the settings that differ, by their names in the API', () => {
    const after = { ...before, events: ['*'], payloadFormat: 'flat' as const, enabled: false };
    expect(toAuditedChanges(before, after)).toEqual({
      events: { from: ['stamp.earned'], to: ['*'] },
      payload_format: { from: 'envelope', to: 'flat' },
      enabled: { from: true, to: false },
    });
    expect(toAuditedChanges(before, { ...before })).toEqual({});
  });
});
