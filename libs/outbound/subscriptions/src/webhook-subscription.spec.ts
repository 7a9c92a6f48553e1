import { describe, expect, it } from '@jest/globals';
import { randomBytes } from 'node:crypto';
import { InvalidFieldsError, RejectedError } from '#kernel/errors.js';
import { readBody } from '#http/fields.pipe.js';
import {
  CreateWebhookSubscriptionDto,
  subscriptionAttributes,
} from './webhook-subscription.dto.js';
import { PUBLIC_ONLY, findTargetUrlError } from '#sending/target-address.js';
import {
  toAuditedChanges,
  changeSubscription,
  getOnlyEvent,
  isSubscribedTo,
  type WebhookSubscription,
} from './webhook-subscription.js';
import { WebhookSecrets } from '#sending/webhook-secrets.service.js';
import { signingSecret } from '#sending/webhook-secret.js';
import { Keyring, createMasterKey } from '#kernel/keyring.js';
import { MasterKeys } from '#database/master-keys.js';

const URL_OF_OURS = 'https://example.com/hooks';

function read(body: object) {
  try {
    const input = readBody(CreateWebhookSubscriptionDto, { target_url: URL_OF_OURS, ...body });
    // The rule that the commands apply, because it depends on the settings.
    if (findTargetUrlError(input.target_url, PUBLIC_ONLY) !== undefined) return ['target_url'];
    return subscriptionAttributes(input);
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
    ['both, the same', { event: 'stamp.earned', events: ['stamp.earned'] }, ['stamp.earned']],
    ['duplicates', { events: ['stamp.earned', 'stamp.earned'] }, ['stamp.earned']],
    ['* twice', { events: ['*', '*'] }, ['*']],
    ['event null', { event: null, events: ['stamp.earned'] }, ['stamp.earned']],
  ])('takes %s', (_case, body, events) => {
    expect(read(body)).toEqual({
      events,
      targetUrl: URL_OF_OURS,
      description: null,
      payloadFormat: 'envelope',
      enabled: true,
    });
  });

  it.each([
    ['neither', {}, ['events']],
    ['no events', { events: [] }, ['events']],
    ['an unknown one in events', { events: ['stamp.lost'] }, ['events']],
    ['* beside others', { events: ['*', 'stamp.earned'] }, ['events']],
    ['events as text', { events: 'stamp.earned' }, ['events']],
    ['webhook.test', { events: ['webhook.test'] }, ['events']],
    ['an unknown event', { event: 'stamp.lost' }, ['event']],
    ['both, not the same', { event: 'stamp.earned', events: ['*'] }, ['event']],
    ['flat with *', { event: '*', payload_format: 'flat' }, ['payload_format']],
    [
      'flat with two',
      { events: ['stamp.earned', 'stamp.removed'], payload_format: 'flat' },
      ['payload_format'],
    ],
    ['another format', { event: '*', payload_format: 'xml' }, ['payload_format']],
    ['a long description', { event: '*', description: 'x'.repeat(256) }, ['description']],
    ['a private target', { event: '*', target_url: 'https://10.0.0.1' }, ['target_url']],
    ['no target', { event: '*', target_url: null }, ['target_url']],
    [
      'several faults',
      { target_url: 'x', payload_format: 'xml' },
      ['target_url', 'payload_format', 'events'],
    ],
  ])('refuses %s', (_case, body, fields) => {
    expect(read(body)).toEqual(fields);
  });

  it('takes flat with one named event, and a subscription that is not enabled yet', () => {
    expect(read({ events: ['stamp.earned'], payload_format: 'flat', enabled: 0 })).toMatchObject({
      payloadFormat: 'flat',
      enabled: false,
    });
  });
});

it('names the event only when there is exactly one', () => {
  expect(getOnlyEvent(['stamp.earned'])).toBe('stamp.earned');
  expect(getOnlyEvent(['stamp.earned', 'stamp.removed'])).toBeNull();
  expect(getOnlyEvent(['*'])).toBeNull();
  expect(isSubscribedTo(['*'], 'stamp.earned')).toBe(true);
  expect(isSubscribedTo(['stamp.removed'], 'stamp.earned')).toBe(false);
});

it('keeps a secret sealed to its subscription', () => {
  const key = createMasterKey(randomBytes(32));
  const secrets = new WebhookSecrets(MasterKeys.withKeys(new Keyring([key], key), new Map()));
  const secret = signingSecret(Buffer.alloc(32, 7));
  expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
  const sealed = secrets.seal(1, secret);
  expect(sealed.includes(secret)).toBe(false);
  expect(secrets.open(1, sealed)).toBe(secret);
  expect(secrets.open(2, sealed)).toBeNull();
});

describe('a change', () => {
  const then = new Date('2026-03-01T10:00:00Z');
  const now = new Date('2026-03-02T10:00:00Z');
  const running: WebhookSubscription = {
    id: 1,
    accountId: 1,
    events: ['stamp.earned'],
    targetUrl: URL_OF_OURS,
    description: null,
    payloadFormat: 'flat',
    enabled: true,
    disabledAt: null,
    disabledReason: null,
    lastDeliveryAt: null,
    lastDeliveryStatus: null,
    lastDeliveryError: null,
    createdAt: then,
    updatedAt: then,
  };
  const failing: WebhookSubscription = {
    ...running,
    enabled: false,
    disabledAt: then,
    disabledReason: 'failing',
  };

  it.each([
    ['nothing', {}],
    ['the same', { events: ['stamp.earned'], targetUrl: URL_OF_OURS, enabled: true }],
  ])('of %s changes nothing', (_case, changes) => {
    expect(changeSubscription(running, changes, now)).toBeUndefined();
  });

  it('of a setting leaves the rest', () => {
    expect(changeSubscription(running, { description: 'till' }, now)).toEqual({
      subscription: { ...running, description: 'till', updatedAt: now },
      switchedTo: null,
    });
  });

  it('pauses', () => {
    expect(changeSubscription(running, { enabled: false }, now)).toEqual({
      subscription: {
        ...running,
        enabled: false,
        disabledAt: now,
        disabledReason: 'disabled_by_user',
        updatedAt: now,
      },
      switchedTo: 'off',
    });
  });

  it('resumes, and keeps the reason when it pauses what is paused', () => {
    expect(changeSubscription(failing, { enabled: true }, now)).toEqual({
      subscription: { ...running, updatedAt: now },
      switchedTo: 'on',
    });
    expect(changeSubscription(failing, { enabled: false }, now)).toBeUndefined();
  });

  it('is checked by its result', () => {
    expect(() => changeSubscription(running, { events: ['*'] }, now)).toThrow(RejectedError);
    expect(
      changeSubscription(running, { events: ['*'], payloadFormat: 'envelope' }, now)?.subscription,
    ).toMatchObject({ events: ['*'], payloadFormat: 'envelope' });
  });
});

describe('the changes of a subscription, for the audit log', () => {
  const before = {
    targetUrl: 'https://user:pass@old.example:8443/hook',
    events: ['stamp.earned'],
    description: null,
    payloadFormat: 'envelope' as const,
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
      'another fragment of a path',
      'http://[2001:db8::1]/a%20b/?q',
      'https://old.example:8443/…',
      'http://[2001:db8::1]/…',
    ],
  ])('have only the host of a URL: %s', (_, targetUrl, from, to) => {
    expect(toAuditedChanges(before, { ...before, targetUrl })).toEqual({
      target_url: { from, to },
    });
  });

  it('say that a URL has changed, and not how', () => {
    const one = { ...before, targetUrl: 'https://a.example/?key=1' };
    const maskedUrl = 'https://a.example/…';
    expect(toAuditedChanges(one, { ...one, targetUrl: 'https://a.example/?key=2' })).toEqual({
      target_url: { from: maskedUrl, to: maskedUrl },
    });
  });

  it('are the settings that differ, by their names in the API', () => {
    const after = { ...before, events: ['*'], payloadFormat: 'flat' as const, enabled: false };
    expect(toAuditedChanges(before, after)).toEqual({
      events: { from: ['stamp.earned'], to: ['*'] },
      payload_format: { from: 'envelope', to: 'flat' },
      enabled: { from: true, to: false },
    });
    expect(toAuditedChanges(before, { ...before })).toEqual({});
  });
});
