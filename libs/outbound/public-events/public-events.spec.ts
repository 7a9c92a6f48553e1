import { describe, expect, it } from '@jest/globals';
import type { Type } from '@nestjs/common';
import { Ajv2020 } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import { readFileSync } from 'node:fs';
import type { EventMeta } from '#platform/kernel/aggregate.js';
import { EventTypes } from '#platform/event-store/port/event-types.js';
import { dtosByName } from '#platform/http/dtos.js';
import { account, type Account } from '#loyalty/accounts/account.js';
import { toAccountJson } from '#loyalty/accounts/account.dto.js';
import { card, type Card } from '#loyalty/cards/card.js';
import { toCardJson } from '#loyalty/cards/card.dto.js';
import { location, type Location } from '#loyalty/locations/location.js';
import { toLocationJson } from '#loyalty/locations/location.dto.js';
import { poster, type Poster } from '#loyalty/posters/poster.js';
import { toPosterJson } from '#loyalty/posters/poster.dto.js';
import { reward, type Reward } from '#loyalty/rewards/reward.js';
import { toRewardJson } from '#loyalty/rewards/reward.dto.js';
import {
  toCustomerCardDetailJson,
  toCustomerCardJson,
} from '#loyalty/stamping/customer-card.dto.js';
import type { CustomerCard, Template } from '#loyalty/stamping/customer-card.js';
import { NO_STAMPINGS } from '#loyalty/stamping/stamp-limits.js';
import { toCustomerJson } from '#loyalty/customers/customer.dto.js';
import type { Customer } from '#loyalty/customers/customer.js';
import { readModels } from '../../../apps/read-models.js';
import { publicEvents } from './public-event.dto.js';
import {
  findPublicType,
  formatBody,
  renderTestEnvelope,
  toPublicCustomerCardEvent,
  toPublicCustomerEvent,
  toPublicRecordEvent,
  PUBLIC_EVENTS,
  type CustomerCardSubject,
  type PublicEvent,
  type PublishedCustomerCardEvent,
} from './public-events.js';

const TYPES = new EventTypes(readModels);
const ID = '018f3c1e-1111-7222-8333-444455556666';
const META: EventMeta = {
  accountId: 7,
  actor: { type: 'token', id: 1 },
  channel: 'api',
  requestId: 'r',
  occurredAt: '2026-03-01T11:00:00.000Z',
  recordedAt: '2026-03-01T12:00:00.000Z',
};
const RECORDED = { id: ID, revision: 4, meta: META };
const CARD: CustomerCard = {
  id: 12,
  accountId: 7,
  customerId: 31,
  cardId: 3,
  uuid: ID,
  code: 'ABCD2345',
  stampsCount: 11,
  unlocked: [],
  redeemedRewardIds: [],
  importedStamps: 0,
  stampings: NO_STAMPINGS,
  issuedAt: META.occurredAt,
  updatedAt: META.recordedAt,
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
const RENDER_CONTEXT = {
  passInstalled: false,
  template: TEMPLATE,
  now: new Date(META.recordedAt),
  publicUrl: 'https://cards.example',
};
const CARD_JSON = toCustomerCardJson(CARD, RENDER_CONTEXT);
const CARD_DETAIL_JSON = toCustomerCardDetailJson(CARD, RENDER_CONTEXT);
const ADA = { id: 31, first_name: 'Ada', last_name: null, email: 'ada@example.com', phone: null };
const SUBJECT: CustomerCardSubject = {
  state: CARD,
  cardName: 'Coffee',
  list: CARD_JSON,
  detail: () => CARD_DETAIL_JSON,
  customer: ADA,
};
const ACTION_DETAILS = {
  locationId: 5,
  staffRef: 'till 2',
  externalRef: 'R-1',
  receiptUse: 0,
  silent: false,
  personal: { note: 'oat milk' },
};
const PERSON: Customer = {
  id: 31,
  accountId: 7,
  firstName: 'Ada',
  lastName: null,
  email: 'ada@example.com',
  phone: null,
  birthday: '1990-05-31',
  metadata: { tier: 'gold' },
  externalReferences: [
    {
      source: 'till',
      externalId: 'A-17',
      metadata: {},
      createdAt: META.occurredAt,
      updatedAt: META.occurredAt,
    },
  ],
  marketingConsent: true,
  smsConsent: false,
  unconfirmedConsents: ['marketing'],
  createdAt: META.occurredAt,
  updatedAt: META.recordedAt,
  erasedAt: null,
  searchText: 'ada',
  phoneDigits: null,
};

const TIMES = { createdAt: META.occurredAt, updatedAt: META.recordedAt };
const TEMPLATE_STATE: Card = {
  id: 3,
  accountId: 7,
  name: 'Coffee',
  cardColor: '#6B4226',
  textColor: '#FFFFFF',
  stampIcon: 'coffee',
  stampColor: '#6B4226',
  stampBackgroundColor: '#FFFFFF',
  stampsRequired: 10,
  initialStamps: 0,
  showMemberField: true,
  showStampsToRewardField: true,
  auxiliaryFields: [{ key: 'aux_1', label: 'Open', value: 'Mo to Sa' }],
  stripType: 'color',
  stripColor: null,
  stripOpacity: 100,
  stripPreset: null,
  stripPicture: null,
  headerText: null,
  expiresAt: null,
  maxStampsPerRequest: null,
  maxStampsPerDay: null,
  minSecondsBetweenStamps: null,
  barcodeFormat: 'qr',
  stampMessage: null,
  rewardMessage: null,
  redemptionMessage: null,
  archivedAt: null,
  ...TIMES,
};
const REWARD: Reward = {
  id: 4,
  accountId: 7,
  cardId: 3,
  name: 'Cake',
  description: null,
  stampsRequired: 5,
  position: 1,
  active: true,
  deletedAt: null,
  ...TIMES,
};
const LOCATION: Location = {
  id: 5,
  accountId: 7,
  name: 'Old Town',
  address: 'Marktplatz 1',
  latitude: 53.55,
  longitude: 9.99,
  precision: 'rooftop',
  geocodeStatus: 'ok',
  deletedAt: null,
  ...TIMES,
};
const POSTER: Poster = {
  id: 6,
  accountId: 7,
  cardId: 3,
  slug: '3kTMd9QwXzR7vB2nLc',
  title: 'Collect stamps',
  paperSize: 'a4',
  primaryColor: '#6B4226',
  textColor: '#FFFFFF',
  secondaryColor: '#FFFFFF',
  active: true,
  contactCollectionMode: 'email_and_phone',
  requireEmail: true,
  requirePhone: false,
  requireBirthday: false,
  minimumAge: null,
  deletedAt: null,
  ...TIMES,
};
const ACCOUNT: Account = {
  id: 7,
  accountId: 7,
  name: 'corner-cafe',
  storeName: null,
  personal: true,
  timeZone: 'Europe/Berlin',
  locale: 'de',
  addressForm: null,
  logoContainsName: false,
  country: 'DE',
  consentTexts: { marketing: 'Mail', sms: null, privacy: null, privacyUrl: null },
  smsCountries: [],
  confirmsCounterConsents: false,
  logo: 'a'.repeat(64),
  website: null,
  phone: null,
  email: null,
  address: null,
  termsText: null,
  ...TIMES,
};
const TEMPLATE_JSON = toCardJson(TEMPLATE_STATE, { rewards: 1, customerCards: 2 });
const REWARD_JSON = toRewardJson(REWARD);
const LOCATION_JSON = toLocationJson(LOCATION);
const POSTER_JSON = toPosterJson(POSTER, {
  publicUrl: 'https://cards.example',
  illegible: ['Ꭰ'],
});
const ACCOUNT_JSON = toAccountJson(
  ACCOUNT,
  { cards: 1, customers: 2, locations: 3, posters: 4 },
  true,
  'https://cards.example',
);

/** The public type, the stored one, the events of its aggregate, and the record as the API shows it. */
const RECORD_EVENTS: [string, string, Record<string, { publishedAs: string | null }>, object][] = [
  ['card.created', 'CardCreated', card.events, TEMPLATE_JSON],
  ['card.updated', 'CardUpdated', card.events, TEMPLATE_JSON],
  ['card.updated', 'CardStripImageSet', card.events, TEMPLATE_JSON],
  ['card.archived', 'CardArchived', card.events, TEMPLATE_JSON],
  ['card.unarchived', 'CardUnarchived', card.events, TEMPLATE_JSON],
  ['reward.created', 'RewardCreated', reward.events, REWARD_JSON],
  ['reward.updated', 'RewardUpdated', reward.events, REWARD_JSON],
  ['reward.deleted', 'RewardDeleted', reward.events, REWARD_JSON],
  ['location.created', 'LocationCreated', location.events, LOCATION_JSON],
  ['location.updated', 'LocationUpdated', location.events, LOCATION_JSON],
  ['location.updated', 'LocationPinned', location.events, LOCATION_JSON],
  ['location.updated', 'LocationUnpinned', location.events, LOCATION_JSON],
  ['location.updated', 'LocationGeocoded', location.events, LOCATION_JSON],
  ['location.updated', 'LocationNotGeocoded', location.events, LOCATION_JSON],
  ['location.deleted', 'LocationDeleted', location.events, LOCATION_JSON],
  ['poster.created', 'PosterCreated', poster.events, POSTER_JSON],
  ['poster.updated', 'PosterUpdated', poster.events, POSTER_JSON],
  ['poster.deleted', 'PosterDeleted', poster.events, POSTER_JSON],
  ['store.updated', 'AccountUpdated', account.events, ACCOUNT_JSON],
  ['store.updated', 'AccountLogoSet', account.events, ACCOUNT_JSON],
  ['store.updated', 'AccountLogoRemoved', account.events, ACCOUNT_JSON],
];

function renderCardEvent(event: PublishedCustomerCardEvent): PublicEvent {
  return toPublicCustomerCardEvent({ ...event, ...RECORDED }, SUBJECT);
}

describe('public events', () => {
  it('findPublicType returns the type of a published event, and undefined for others', () => {
    expect(findPublicType(TYPES, 'StampsEarned')).toBe('stamp.earned');
    expect(findPublicType(TYPES, 'AccountCreated')).toBeUndefined();
    expect(findPublicType(TYPES, 'constructor')).toBeUndefined();
  });

  it('findPublicType returns undefined for a change of external references only', () => {
    expect(findPublicType(TYPES, 'CustomerUpdated')).toBe('customer.updated');
    expect(findPublicType(TYPES, 'CustomerReferencesUpdated')).toBeUndefined();
  });

  it('customer.created contains the customer with its source', () => {
    const json = toCustomerJson(PERSON, []);
    const event = toPublicCustomerEvent(
      {
        type: 'CustomerCreated',
        ...RECORDED,
        data: {
          customerId: 31,
          accountId: 7,
          source: 'poster',
          marketingConsent: true,
          smsConsent: false,
          sendCardLinks: false,
          agreed: null,
          signup: null,
          unconfirmedConsents: [],
          personal: null,
        },
      },
      { customer: json, before: undefined },
    );
    expectDocumented(event, 'customer.created', { ...json, source: 'poster' });
  });

  it('customer.updated contains the customer and the whole old value of each changed field', () => {
    const metadata = { tier: 'gold', visits: 3 };
    const before = toCustomerJson({ ...PERSON, lastName: 'King', metadata }, []);
    const after = toCustomerJson({ ...PERSON, metadata: { ...metadata, visits: 4 } }, []);
    const data = { customerId: 31, personal: null };
    const event = toPublicCustomerEvent(
      { type: 'CustomerUpdated', ...RECORDED, data },
      { customer: after, before },
    );
    expectDocumented(event, 'customer.updated', after);
    expect(event.previous_attributes).toEqual({ last_name: 'King', metadata });
  });

  it('customer.updated shows a phone number that was normalized for the country of the store', () => {
    const after = toCustomerJson({ ...PERSON, phone: '+491711234567' }, []);
    const before = toCustomerJson({ ...PERSON, phone: '01711234567' }, []);
    const data = { customerId: 31, country: 'DE', personal: null };
    const event = toPublicCustomerEvent(
      { type: 'CustomerPhoneNormalized', ...RECORDED, data },
      { customer: after, before },
    );
    expectDocumented(event, 'customer.updated', after);
    expect(event.previous_attributes).toEqual({ phone: '01711234567' });
    expect(findPublicType(TYPES, 'CustomerPhoneNormalized')).toBe('customer.updated');
  });

  it('customer_card.created has an envelope with an evt_ id, the sequence and the card', () => {
    const event = renderCardEvent({
      type: 'CustomerCardIssued',
      data: { id: 12, accountId: 7, customerId: 31, cardId: 3, uuid: CARD.uuid, code: CARD.code },
    });
    const data = { ...CARD_DETAIL_JSON, customer: ADA };
    expectDocumented(event, 'customer_card.created', data);
    expect(event).toEqual({
      id: expect.stringMatching(/^evt_[0-9A-HJKMNP-TV-Z]{26}$/),
      type: 'customer_card.created',
      timestamp: META.recordedAt,
      sequence: 4,
      account_id: 7,
      data,
    });
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
    expectDocumented(event, 'stamp.earned', {
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
      customer_card: CARD_JSON,
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
        receiptUse: 0,
        reverses: ID,
        countedAt: META.occurredAt,
      },
    });
    expectDocumented(event, 'stamp.removed', {
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
      customer_card: CARD_JSON,
    });
  });

  it('reward.unlocked shows the reward as it was unlocked, and the balance', () => {
    const event = renderCardEvent({
      type: 'RewardUnlocked',
      data: { customerId: 31, rewardId: 4, name: 'Cake', description: null, stampsRequired: 10 },
    });
    expectDocumented(event, 'reward.unlocked', {
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
    expectDocumented(event, 'reward.redeemed', {
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

  it.each(RECORD_EVENTS)('%s, from %s, contains the record', (publicType, type, events, json) => {
    const event = toPublicRecordEvent({ type, ...RECORDED }, events, json);
    expectDocumented(event, publicType, json);
    expect(event).toMatchObject({ sequence: 4, account_id: 7, timestamp: META.recordedAt });
    expect(findPublicType(TYPES, type)).toBe(publicType);
  });

  it('no record loses a field when personal_data is false', () => {
    for (const [type, , , json] of RECORD_EVENTS) {
      const envelope = Buffer.from(JSON.stringify({ id: 'evt_1', type, data: json }));
      expect(JSON.parse(formatBody(envelope, 'flat', false).toString())).toEqual(json);
    }
  });

  it('every type is published by an aggregate, and every type that one publishes is listed', () => {
    const tables = readModels.flatMap(({ events }) => Object.values(events));
    const published = tables.flatMap(({ publishedAs }) => publishedAs ?? []);
    expect([...new Set(published)].sort()).toEqual([...PUBLIC_EVENTS].sort());
  });

  it('every published event is documented', () => {
    expect(publicEvents.map(({ type }) => type)).toEqual([...PUBLIC_EVENTS, 'webhook.test']);
  });

  it('webhook.test names the subscription', () => {
    const text = renderTestEnvelope('evt_1', { id: 3, account_id: 7 }, new Date(META.recordedAt));
    expectDocumented(JSON.parse(text) as PublicEvent, 'webhook.test', {
      subscription_id: 3,
      message: expect.any(String),
    });
  });

  it('formatBody returns exactly the bytes of data in the flat format', () => {
    const data = '{"b":1,"metadata":{"__proto__":"x","2":"y","é":"\\u2028"},"n":0.1}';
    const text = `{"id":"evt_1","type":"stamp.earned","data":${JSON.stringify(JSON.parse(data))}}`;
    const envelope = Buffer.from(text);
    expect(formatBody(envelope, 'envelope', true)).toBe(envelope);
    const flat = formatBody(envelope, 'flat', true).toString();
    expect(JSON.parse(flat)).toEqual(JSON.parse(data));
    expect(text).toContain(flat);
  });

  it('formatBody makes each body of an envelope once', () => {
    const create = () =>
      Buffer.from('{"type":"customer.created","data":{"email":"a@example.com"}}');
    const [envelope, otherBytes] = [create(), create()];
    const bodies = (['envelope', 'flat'] as const).flatMap((format) =>
      [true, false].map((personal) => formatBody(envelope, format, personal)),
    );
    const again = (['envelope', 'flat'] as const).flatMap((format) =>
      [true, false].map((personal) => formatBody(envelope, format, personal)),
    );
    for (const [i, body] of bodies.entries()) expect(again[i]).toBe(body);
    expect(new Set(bodies.map(String)).size).toBe(4);
    expect(formatBody(otherBytes, 'flat', false)).not.toBe(bodies[3]);
  });
});

describe('formatBody without personal data', () => {
  const customer = {
    id: 31,
    first_name: 'Anna',
    last_name: 'Berg',
    email: 'anna@example.com',
    phone: '+4915112345678',
  };
  const person = {
    ...customer,
    birthday: '1990-05-31',
    metadata: { vip: true },
    external_references: [{ source: 'pos', external_id: '7' }],
  };
  const nobody = {
    id: 31,
    first_name: null,
    last_name: null,
    email: null,
    phone: null,
    birthday: null,
    metadata: null,
    external_references: null,
  };
  const format = (event: object, payloadFormat: 'envelope' | 'flat') =>
    JSON.parse(
      formatBody(Buffer.from(JSON.stringify(event)), payloadFormat, false).toString(),
    ) as unknown;

  it('sends null for each personal field of a customer, and of the old values', () => {
    const event = {
      id: 'evt_1',
      data: { ...person, stamp_count: 3, marketing_consent: true },
      previous_attributes: { email: 'old@example.com', metadata: {}, sms_consent: false },
    };
    const data = { ...nobody, stamp_count: 3, marketing_consent: true };
    expect(format(event, 'envelope')).toEqual({
      id: 'evt_1',
      data,
      previous_attributes: { email: null, metadata: null, sms_consent: false },
    });
    expect(format(event, 'flat')).toEqual(data);
  });

  it('sends null for each personal field of the customer of a card, and for the note', () => {
    const event = { data: { stamps: 2, staff_ref: 'till 2', note: 'two lattes', customer } };
    const data = {
      stamps: 2,
      staff_ref: 'till 2',
      note: null,
      customer: { id: 31, first_name: null, last_name: null, email: null, phone: null },
    };
    expect(format(event, 'envelope')).toEqual({ data });
    expect(format(event, 'flat')).toEqual(data);
  });
});

/** Schemas by name from the document, which a test compares with the code; all objects closed. */
const ajv = new Ajv2020({ strict: false, allErrors: true });
formats.default(ajv);
ajv.addSchema(closeSchema(JSON.parse(readFileSync('openapi.json', 'utf8'))) as object, 'document');

/** Expects this data, and the schema of the type to name every field of the event and no other. */
function expectDocumented(event: PublicEvent, type: string, data: object): void {
  const webhook = publicEvents.find((candidate) => candidate.type === type);
  expect(event.type).toBe(type);
  expect(event.data).toEqual(data);
  expect(findSchemaErrors(getDtoName(webhook?.envelope), event)).toBe('');
  expect(findSchemaErrors(getDtoName(webhook?.data), event.data)).toBe('');
}

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
