import { describe, expect, it } from '@jest/globals';
import type { EventMeta } from '#kernel/aggregate.js';
import { EventTypes } from '#event-store/port/event-types.js';
import { card } from '#cards/card.js';
import { customer } from '#customers/customer.js';

import { customerCard, type CustomerCard } from '#stamping/customer-card.js';
import {
  formatBody,
  toPublicCustomerCardEvent,
  type PublishedCustomerCardEvent,
  toPublicCustomerEvent,
  findPublicType,
  assertKnownTypes,
  type CustomerCardSubject,
  type CustomerSubject,
} from './public-events.js';

const TYPES = new EventTypes([card, customer, customerCard]);
const ID = '018f3c1e-1111-7222-8333-444455556666';
const META: EventMeta = {
  accountId: 7,
  actor: { type: 'token', id: 1 },
  channel: 'api',
  requestId: 'r',
  occurredAt: '2026-03-01T11:00:00.000Z',
  recordedAt: '2026-03-01T12:00:00.000Z',
};
const CARD: CustomerCard = {
  id: 12,
  accountId: 7,
  customerId: 31,
  cardId: 3,
  uuid: 'b1c2',
  code: 'ABCD2345',
  stampsCount: 11,
  unlocked: [],
  redeemedRewardIds: [],
  stampings: [],
  issuedAt: META.occurredAt,
  updatedAt: META.recordedAt,
};
const ADA = { id: 31, first_name: 'Ada', last_name: null, email: 'ada@example.com', phone: null };
const SUBJECT: CustomerCardSubject = {
  state: CARD,
  cardName: 'Coffee',
  list: { stamps_remaining: 0 },
  detail: () => ({ id: 12, available_rewards: [] }),
  customer: ADA,
};
const ACTION_DETAILS = {
  locationId: 5,
  staffRef: 'till 2',
  externalRef: 'R-1',
  silent: false,
  personal: { note: 'oat milk' },
};

const PERSON = {
  id: 31,
  first_name: 'Ada',
  last_name: null,
  email: 'ada@example.com',
  phone: null,
  birthday: null,
  metadata: {},
  marketing_consent: false,
  sms_consent: false,
};

function renderUpdate(subject: CustomerSubject) {
  const data = { customerId: 31, personal: null };
  return toPublicCustomerEvent(
    { type: 'CustomerUpdated', id: ID, revision: 4, meta: META, data },
    subject,
  );
}

function renderCardEvent(event: PublishedCustomerCardEvent) {
  return toPublicCustomerCardEvent({ ...event, id: ID, revision: 4, meta: META }, SUBJECT);
}

describe('public events', () => {
  it('findPublicType returns the type of a published event, and undefined for others', () => {
    expect(findPublicType(TYPES, 'StampsEarned')).toBe('stamp.earned');
    expect(findPublicType(TYPES, 'CardCreated')).toBeUndefined();
    expect(findPublicType(TYPES, 'constructor')).toBeUndefined();
  });

  it('assertKnownTypes refuses an unknown type', () => {
    const id = ID;
    assertKnownTypes(TYPES, [
      { id, type: 'StampsEarned', version: 2 },
      { id, type: 'CardCreated', version: 1 },
    ]);
    for (const type of ['StampsLost', 'constructor']) {
      expect(() => assertKnownTypes(TYPES, [{ id, type, version: 1 }])).toThrow(
        `the type ${type} of event ${ID}`,
      );
    }
  });

  it('assertKnownTypes refuses an unknown version', () => {
    const newer = { id: ID, type: 'StampsEarned', version: 3 };
    expect(() => assertKnownTypes(TYPES, [newer])).toThrow(
      `does not know version 3 of the type StampsEarned of event ${ID}`,
    );
  });

  it('customer_card.created has an envelope with an evt_ id, the sequence and the card', () => {
    const event = renderCardEvent({
      type: 'CustomerCardIssued',
      data: { id: 12, accountId: 7, customerId: 31, cardId: 3, uuid: 'b1c2', code: 'ABCD2345' },
    });
    expect(event).toEqual({
      id: expect.stringMatching(/^evt_[0-9A-HJKMNP-TV-Z]{26}$/),
      type: 'customer_card.created',
      timestamp: META.recordedAt,
      sequence: 4,
      account_id: 7,
      data: { id: 12, available_rewards: [], customer: ADA },
    });
  });

  it('customer.updated shows a phone number that was normalized for the country of the store', () => {
    const data = { customerId: 31, country: 'DE', personal: null };
    const phone = '+491711234567';
    const event = toPublicCustomerEvent(
      { type: 'CustomerPhoneNormalized', id: ID, revision: 4, meta: META, data },
      { customer: { ...PERSON, phone }, before: { ...PERSON, phone: '01711234567' } },
    );
    expect(event).toMatchObject({
      type: 'customer.updated',
      data: { phone },
      previous_attributes: { phone: '01711234567' },
    });
    expect(findPublicType(TYPES, 'CustomerPhoneNormalized')).toBe('customer.updated');
  });

  it('customer.created contains the customer with its source', () => {
    const event = toPublicCustomerEvent(
      {
        type: 'CustomerCreated',
        id: ID,
        revision: 0,
        meta: META,
        data: {
          customerId: 31,
          accountId: 7,
          source: 'poster',
          marketingConsent: false,
          smsConsent: false,
          sendCardLinks: false,
          agreed: null,
          personal: null,
        },
      },
      { customer: PERSON, before: undefined },
    );
    expect(event.type).toBe('customer.created');
    expect(event.data).toEqual({ ...PERSON, source: 'poster' });
  });

  it('customer.updated contains the customer and the whole old value of each changed field', () => {
    const before = { ...PERSON, last_name: 'King', metadata: { tier: 'gold', visits: 3 } };
    const after = { ...PERSON, last_name: null, metadata: { tier: 'gold', visits: 4 } };
    const event = renderUpdate({ customer: after, before });
    expect(event.type).toBe('customer.updated');
    expect(event.data).toEqual(after);
    expect(event.previous_attributes).toEqual({
      last_name: 'King',
      metadata: { tier: 'gold', visits: 3 },
    });
  });

  it('findPublicType returns undefined for a change of external references only', () => {
    expect(findPublicType(TYPES, 'CustomerUpdated')).toBe('customer.updated');
    expect(findPublicType(TYPES, 'CustomerReferencesUpdated')).toBeUndefined();
  });

  it('stamp.earned shows the added stamps, the new balance and the note', () => {
    const event = renderCardEvent({
      type: 'StampsEarned',
      data: {
        customerId: 31,
        stamps: 2,
        source: 'pos',
        ...ACTION_DETAILS,
        reverses: null,
        templateVersion: 17,
      },
    });
    expect(event.data).toEqual({
      customer_id: 31,
      customer_card_id: 12,
      card_id: 3,
      card_name: 'Coffee',
      stamps: 2,
      stamps_count: 11,
      stamps_remaining: 0,
      source: 'pos',
      occurred_at: META.occurredAt,
      location_id: 5,
      staff_ref: 'till 2',
      external_ref: 'R-1',
      note: 'oat milk',
      customer: ADA,
      customer_card: { stamps_remaining: 0 },
    });
  });

  it('stamp.removed shows the removed stamps as a positive number, and the new balance', () => {
    const event = renderCardEvent({
      type: 'StampsRemoved',
      data: {
        customerId: 31,
        stamps: 2,
        source: 'adjustment',
        ...ACTION_DETAILS,
        locationId: null,
        staffRef: null,
        externalRef: null,
        reverses: ID,
        countedAt: META.occurredAt,
      },
    });
    expect(event.type).toBe('stamp.removed');
    expect(event.data).toEqual({
      customer_id: 31,
      customer_card_id: 12,
      card_id: 3,
      card_name: 'Coffee',
      stamps: 2,
      stamps_count: 11,
      stamps_remaining: 0,
      source: 'adjustment',
      occurred_at: META.occurredAt,
      location_id: null,
      staff_ref: null,
      external_ref: null,
      note: null,
      customer: ADA,
      customer_card: { stamps_remaining: 0 },
    });
  });

  it('reward.unlocked shows the reward as it was unlocked, and the balance', () => {
    const event = renderCardEvent({
      type: 'RewardUnlocked',
      data: { customerId: 31, rewardId: 4, name: 'Cake', description: null, stampsRequired: 10 },
    });
    expect(event.data).toEqual({
      customer_id: 31,
      customer_card_id: 12,
      card_id: 3,
      card_name: 'Coffee',
      stamps_count: 11,
      reward: { id: 4, name: 'Cake', description: null, stamps_required: 10 },
      customer: ADA,
    });
  });

  it('reward.redeemed names the redemption and the balance left', () => {
    const event = renderCardEvent({
      type: 'RewardRedeemed',
      data: {
        customerId: 31,
        redemptionId: 9,
        rewardId: 4,
        rewardName: 'Cake',
        stampsSpent: 10,
        locked: [],
        ...ACTION_DETAILS,
        templateVersion: 17,
      },
    });
    expect(event.data).toEqual({
      id: 9,
      reward_id: 4,
      reward_name: 'Cake',
      stamps_spent: 10,
      stamps_remaining: 11,
      redeemed_at: META.occurredAt,
      external_ref: 'R-1',
      staff_ref: 'till 2',
      location_id: 5,
      note: 'oat milk',
      occurred_at: META.occurredAt,
      customer_id: 31,
      customer_card_id: 12,
      card_id: 3,
      card_name: 'Coffee',
      customer: ADA,
    });
  });

  it('formatBody returns exactly the bytes of data in the flat format', () => {
    const data = '{"b":1,"metadata":{"__proto__":"x","2":"y","é":"\\u2028"},"n":0.1}';
    const text = `{"id":"evt_1","type":"stamp.earned","data":${JSON.stringify(JSON.parse(data))}}`;
    const envelope = Buffer.from(text);
    expect(formatBody(envelope, 'envelope')).toBe(envelope);
    const flat = formatBody(envelope, 'flat').toString();
    expect(JSON.parse(flat)).toEqual(JSON.parse(data));
    expect(text).toContain(flat);
  });
});
