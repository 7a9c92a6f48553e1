import { describe, expect, it } from '@jest/globals';
import type { Type } from '@nestjs/common';
import { Ajv2020 } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import { readFileSync } from 'node:fs';
import type { EventMeta } from '#kernel/aggregate.js';
import { dtosByName } from '#http/fields.pipe.js';
import { toCustomerCardDetailJson, toCustomerCardJson } from '#stamping/customer-card.dto.js';

import type { CustomerCard, Template } from '#stamping/customer-card.js';
import { toCustomerJson } from '#customers/customer.dto.js';
import { publicEvents } from './public-event.dto.js';
import {
  toPublicCustomerCardEvent,
  type PublishedCustomerCardEvent,
  toPublicCustomerEvent,
  renderTestEnvelope,
  type PublicEvent,
} from './public-events.js';

const AT = '2026-03-01T12:00:00.000Z';
const META: EventMeta = {
  accountId: 7,
  actor: { type: 'token', id: 1 },
  channel: 'api',
  requestId: 'r',
  occurredAt: AT,
  recordedAt: AT,
};
const RECORDED = { id: '018f3c1e-1111-7222-8333-444455556666', revision: 1, meta: META };
const CARD: CustomerCard = {
  id: 12,
  accountId: 7,
  customerId: 31,
  cardId: 3,
  uuid: RECORDED.id,
  code: 'ABCD2345',
  stampsCount: 11,
  unlocked: [],
  redeemedRewardIds: [],
  stampings: [],
  issuedAt: AT,
  updatedAt: AT,
};
const TEMPLATE: Template = {
  cardId: 3,
  version: 17,
  name: 'Coffee',
  stampsRequired: 10,
  initialStamps: 0,
  expiresAt: null,
  archivedAt: null,
  maxStampsPerRequest: null,
  maxStampsPerDay: null,
  minSecondsBetweenStamps: null,
  timeZone: 'UTC',
  rewards: [{ id: 4, name: 'Cake', description: null, stampsRequired: 5, active: true }],
};
const ACTION_DETAILS = {
  locationId: null,
  staffRef: 'till 2',
  externalRef: null,
  silent: false,
  personal: null,
};

function renderCardEvent(event: PublishedCustomerCardEvent): PublicEvent {
  const renderContext = {
    passInstalled: false,
    template: TEMPLATE,
    now: new Date(AT),
    publicUrl: 'https://cards.example',
  };
  return toPublicCustomerCardEvent(
    { ...event, ...RECORDED },
    {
      state: CARD,
      cardName: TEMPLATE.name,
      list: toCustomerCardJson(CARD, renderContext),
      detail: () => toCustomerCardDetailJson(CARD, renderContext),
      customer: { id: 31, first_name: 'Ada', last_name: null, email: null, phone: '+491234' },
    },
  );
}

function renderCustomerEvent(change: 'created' | 'updated'): PublicEvent {
  const customer = {
    id: 31,
    accountId: 7,
    firstName: 'Ada',
    lastName: null,
    email: 'ada@example.com',
    phone: null,
    birthday: '1990-05-31',
    metadata: { tier: 'gold' },
    externalReferences: [
      { source: 'till', externalId: 'A-17', metadata: {}, createdAt: AT, updatedAt: AT },
    ],
    marketingConsent: true,
    smsConsent: false,
    createdAt: AT,
    updatedAt: AT,
    erasedAt: null,
    searchText: 'ada',
    phoneDigits: null,
  };
  const before = toCustomerJson(customer, []);
  if (change === 'updated') {
    const data = { customerId: 31, smsConsent: true, personal: { lastName: 'Byron' } };
    const after = toCustomerJson({ ...customer, lastName: 'Byron', smsConsent: true }, []);
    const event = { type: 'CustomerUpdated', data, ...RECORDED } as const;
    return toPublicCustomerEvent(event, { customer: after, before });
  }
  const data = {
    customerId: 31,
    accountId: 7,
    source: 'import',
    marketingConsent: true,
    smsConsent: false,
    sendCardLinks: false,
    agreed: null,
    personal: null,
  } as const;
  const event = { type: 'CustomerCreated', data, ...RECORDED } as const;
  return toPublicCustomerEvent(event, { customer: before, before: undefined });
}

function renderTestEvent(): PublicEvent {
  const text = renderTestEnvelope('evt_1', { id: 3, account_id: 7 }, new Date(AT));
  return JSON.parse(text) as PublicEvent;
}

describe('the documented payloads', () => {
  it.each([
    ['customer.created', () => renderCustomerEvent('created')],
    ['customer.updated', () => renderCustomerEvent('updated')],
    ['webhook.test', renderTestEvent],
    [
      'customer_card.created',
      () =>
        renderCardEvent({
          type: 'CustomerCardIssued',
          data: {
            id: 12,
            accountId: 7,
            customerId: 31,
            cardId: 3,
            uuid: CARD.uuid,
            code: CARD.code,
          },
        }),
    ],
    [
      'stamp.earned',
      () =>
        renderCardEvent({
          type: 'StampsEarned',
          data: {
            customerId: 31,
            stamps: 2,
            source: 'welcome_bonus',
            ...ACTION_DETAILS,
            reverses: null,
            templateVersion: 17,
          },
        }),
    ],
    [
      'stamp.removed',
      () =>
        renderCardEvent({
          type: 'StampsRemoved',
          data: {
            customerId: 31,
            stamps: 2,
            source: 'adjustment',
            ...ACTION_DETAILS,
            reverses: null,
          },
        }),
    ],
    [
      'reward.unlocked',
      () =>
        renderCardEvent({
          type: 'RewardUnlocked',
          data: { customerId: 31, rewardId: 4, name: 'Cake', description: null, stampsRequired: 5 },
        }),
    ],
    [
      'reward.redeemed',
      () =>
        renderCardEvent({
          type: 'RewardRedeemed',
          data: {
            customerId: 31,
            redemptionId: 9,
            rewardId: 4,
            rewardName: 'Cake',
            stampsSpent: 5,
            locked: [],
            ...ACTION_DETAILS,
            templateVersion: 17,
          },
        }),
    ],
  ])('describe %s as it is rendered, field by field', (type, render) => {
    const webhook = publicEvents.find((candidate) => candidate.type === type);
    const event = render();
    expect(event.type).toBe(type);
    // Every field is required and no other is allowed, so nothing is missing and nothing superfluous.
    expect(findSchemaErrors(getDtoName(webhook?.envelope), event)).toBe('');
    expect(findSchemaErrors(getDtoName(webhook?.data), event.data)).toBe('');
  });
});

/** Schemas by name from the document, which a test compares with the code; all objects closed. */
const ajv = new Ajv2020({ strict: false, allErrors: true });
formats.default(ajv);
ajv.addSchema(closeSchema(JSON.parse(readFileSync('openapi.json', 'utf8'))) as object, 'document');

function findSchemaErrors(schema: string, value: unknown): string {
  const validate = ajv.getSchema(`document#/components/schemas/${schema}`);
  if (!validate) throw new Error(`${schema} is not in the document`);
  return validate(value) ? '' : ajv.errorsText(validate.errors);
}

function closeSchema(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(closeSchema);
  if (typeof value !== 'object' || value === null) return value;
  const inner = Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key, closeSchema(item)]),
  );
  return 'properties' in inner && inner['type'] === 'object'
    ? { ...inner, additionalProperties: false }
    : inner;
}

function getDtoName(dto: Type | undefined): string {
  for (const [name, { dto: candidate }] of dtosByName) if (candidate === dto) return name;
  throw new Error('it is not documented');
}
