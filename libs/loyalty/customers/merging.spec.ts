import { describe, expect, it } from '@jest/globals';
import { RejectedError } from '#platform/kernel/errors.js';
import { AT, scenario } from '../../../test/support/fixtures/aggregate-scenario.js';
import {
  customer,
  eraseCustomer,
  findMovedValues,
  updateCustomer,
  type Customer,
} from './customer.js';
import type { CustomerEvent, ExternalReference, PersonalFields } from './customer.events.js';
import { decideMergedAway, mergeCustomers, unmergeCustomers } from './merging.js';

const NOW = new Date('2026-03-01T12:00:00.000Z');
const NOWHERE = { country: null };
const CARDS = { moved: [4], added: [{ fromId: 5, intoId: 6 }] };

type PersonDetails = Partial<PersonalFields> & { marketingConsent?: boolean; smsConsent?: boolean };

const customerCreated = (
  customerId: number,
  { marketingConsent = false, smsConsent = false, ...personal }: PersonDetails = {},
): CustomerEvent => ({
  type: 'CustomerCreated',
  data: {
    customerId,
    accountId: 1,
    source: 'api',
    marketingConsent,
    smsConsent,
    sendCardLinks: false,
    agreed: null,
    signup: null,
    unconfirmedConsents: [],
    personal: {
      firstName: `Person ${customerId}`,
      lastName: null,
      email: null,
      phone: null,
      birthday: null,
      metadata: {},
      externalReferences: [],
      ...personal,
    },
  },
});
const reference = (externalId: string, metadata = {}): ExternalReference => ({
  source: 'till',
  externalId,
  metadata,
  createdAt: AT,
  updatedAt: AT,
});
const person = (id: number, fields: PersonDetails, ...events: CustomerEvent[]): Customer =>
  scenario(customer, customerCreated(id, fields), ...events).state();

/** Merges two customers, and returns the events and states of both. */
function mergeBoth(
  one: PersonDetails,
  two: PersonDetails,
): { events: CustomerEvent[][]; both: [Customer, Customer] } {
  const { survivor, other } = mergeCustomers(person(1, one), person(2, two), CARDS);
  return {
    events: [survivor, other],
    both: [person(1, one, ...survivor), person(2, two, ...other)],
  };
}

/** @returns the error that the work throws */
function catchRejected(work: () => unknown): RejectedError {
  try {
    work();
  } catch (error) {
    if (error instanceof RejectedError) return error;
    throw error;
  }
  throw new Error('nothing was rejected');
}

const MINE: PersonDetails = { email: 'one@x.example', lastName: 'Berg' };
const THEIRS: PersonDetails = {
  email: 'two@x.example',
  phone: '+4915112345678',
  lastName: 'Tal',
  birthday: '1990-05-31',
};

describe('mergeCustomers', () => {
  it('fills the fields that the survivor lacks, and clears unique values of the other', () => {
    const { events, both } = mergeBoth(MINE, THEIRS);
    expect(events).toEqual([
      [
        {
          type: 'CustomerMerged',
          data: {
            customerId: 1,
            fromCustomerId: 2,
            cards: CARDS,
            personal: { phone: '+4915112345678', birthday: '1990-05-31' },
          },
        },
      ],
      [
        {
          type: 'CustomerMergedAway',
          data: { customerId: 2, intoCustomerId: 1, personal: { phone: null } },
        },
      ],
    ]);
    expect(both[0]).toMatchObject({ ...MINE, phone: THEIRS.phone, phoneDigits: '4915112345678' });
    expect(both[1]).toMatchObject({
      ...THEIRS,
      phone: null,
      searchText: '',
      phoneDigits: null,
      mergedInto: { customerId: 1, given: { phone: THEIRS.phone } },
    });
  });

  it('moves only the claims on values that the survivor takes', () => {
    const { events } = mergeBoth(MINE, { ...THEIRS, externalReferences: [reference('A')] });
    const movedValues = [
      { kind: 'phone', value: '+4915112345678' },
      { kind: 'external_references', value: '["till","A"]' },
    ];
    expect(findMovedValues(person(1, MINE), events[0] ?? [])).toEqual({
      added: movedValues,
      released: [],
    });
    const before = person(2, { ...THEIRS, externalReferences: [reference('A')] });
    expect(findMovedValues(before, events[1] ?? [])).toEqual({ added: [], released: movedValues });
  });

  it('merges metadata, where values of the survivor win, and moves all references', () => {
    const { both } = mergeBoth(
      { metadata: { a: 1, b: 1 }, externalReferences: [reference('B')] },
      { metadata: { b: 2, c: 2 }, externalReferences: [reference('C'), reference('A')] },
    );
    expect(both[0].metadata).toEqual({ a: 1, b: 1, c: 2 });
    expect(both[0].externalReferences).toEqual([reference('A'), reference('B'), reference('C')]);
    expect(both[1].externalReferences).toEqual([]);
  });

  const DIGITS = { phone: '01711234567' };
  const E164 = { phone: '+491711234567' };
  it.each<[string, PersonDetails, PersonDetails, [string, string]]>([
    ['digits of the same number', DIGITS, E164, ['+491711234567', '01711234567']],
    ['the number in E.164 format', E164, DIGITS, ['+491711234567', '01711234567']],
    ['the same digits abroad', { phone: '491711234567' }, E164, [E164.phone, '491711234567']],
    ['another number', { phone: '01719999999' }, E164, ['01719999999', E164.phone]],
    ['another international number', { phone: '+431' }, E164, ['+431', E164.phone]],
    ['digits, like the other', DIGITS, { phone: '491711234567' }, [DIGITS.phone, '491711234567']],
  ])(
    'leaves a survivor who has %s with the searchable form of their number',
    (_, one, two, phones) => {
      const consent = { marketingConsent: true, smsConsent: true };
      const { events, both } = mergeBoth({ ...one, ...consent }, two);
      expect(both.map(({ phone }) => phone)).toEqual(phones);
      expect(both[0]).toMatchObject({ ...consent, phoneDigits: phones[0].replace('+', '') });
      expect(both[1].phoneDigits).toBeNull();
      const movedValues = [one, two].map((before, i) =>
        findMovedValues(person(i + 1, before), events[i] ?? []),
      );
      expect(movedValues[0]).toEqual({
        added: movedValues[1]?.released,
        released: movedValues[1]?.added,
      });
      const back = unmergeCustomers(...both, { country: 'DE' });
      expect([
        scenario(customer, customerCreated(1, one), ...(events[0] ?? []), ...back.survivor).state()
          .phone,
        scenario(customer, customerCreated(2, two), ...(events[1] ?? []), ...back.other).state()
          .phone,
      ]).toEqual([one.phone, two.phone]);
    },
  );

  const yes = { marketingConsent: true, smsConsent: true };
  it.each<[string, PersonDetails, PersonDetails, { marketing: boolean; sms: boolean }]>([
    [
      'never extends a consent of the other to the survivor',
      {},
      yes,
      { marketing: false, sms: false },
    ],
    ['keeps the consents of the survivor', yes, {}, { marketing: true, sms: true }],
    [
      'extends no consent to a phone number of the other',
      yes,
      { phone: '1' },
      { marketing: false, sms: false },
    ],
    [
      'extends no marketing consent to an e-mail address of the other',
      yes,
      { email: 'b@x' },
      { marketing: false, sms: true },
    ],
    [
      'keeps the consents that both gave',
      yes,
      { ...yes, phone: '1' },
      { marketing: true, sms: true },
    ],
  ])('%s', (_, one, two, { marketing, sms }) => {
    const [survivor] = mergeBoth(one, two).both;
    expect([survivor.marketingConsent, survivor.smsConsent]).toEqual([marketing, sms]);
  });

  it('refuses a merged customer on either side, and names the survivor', () => {
    const [, mergedAway] = mergeBoth(MINE, THEIRS).both;
    const third = person(3, {});
    for (const pair of [
      [mergedAway, third],
      [third, mergedAway],
    ] as const) {
      const { code, errors } = catchRejected(() => mergeCustomers(...pair, CARDS));
      expect([code, errors]).toEqual([
        'customer_merged',
        { base: ['Customer 2 was merged into customer 1'] },
      ]);
    }
    const change = () =>
      updateCustomer(
        mergedAway,
        { firstName: 'Eve' },
        { timeZone: 'UTC', country: null, now: NOW },
      );
    expect(catchRejected(change).code).toBe('customer_merged');
  });

  it('refuses metadata that together exceed the limit', () => {
    const many = (prefix: string) =>
      Object.fromEntries(Array.from({ length: 30 }, (_, i) => [`${prefix}${i}`, i]));
    const error = catchRejected(() => mergeBoth({ metadata: many('a') }, { metadata: many('b') }));
    expect(Object.keys(error.errors)).toEqual(['metadata']);
  });

  it('leads to states without personal data when the key is destroyed', () => {
    const { events } = mergeBoth(MINE, THEIRS);
    const withoutPersonal = (list: CustomerEvent[] = []) =>
      list.map((event) => ({ ...event, data: { ...event.data, personal: null } }) as CustomerEvent);
    const state = person(1, MINE, ...withoutPersonal(events[0]));
    expect(state.merges).toEqual([
      { customerId: 2, cards: CARDS, fields: [], metadataKeys: [], references: [] },
    ]);
    expect(person(2, THEIRS, ...withoutPersonal(events[1])).mergedInto).toEqual({
      customerId: 1,
      given: {},
    });
  });
});

describe('unmergeCustomers', () => {
  const FULL: PersonDetails = {
    ...THEIRS,
    metadata: { a: 2, b: 2 },
    externalReferences: [reference('A'), reference('C')],
  };
  const OWN: PersonDetails = { ...MINE, metadata: { a: 1 }, externalReferences: [reference('B')] };

  it('restores both customers as they were', () => {
    const { events, both } = mergeBoth(OWN, FULL);
    const { survivor, other } = unmergeCustomers(...both, NOWHERE);
    const after = [
      person(1, OWN, ...(events[0] ?? []), ...survivor),
      person(2, FULL, ...(events[1] ?? []), ...other),
    ];
    expect(after).toEqual([
      { ...person(1, OWN), merges: [], holds: [2] },
      { ...person(2, FULL), formerlyIn: [1] },
    ]);
  });

  it('moves the claims back to the other customer', () => {
    const { both } = mergeBoth(OWN, FULL);
    const { survivor, other } = unmergeCustomers(...both, NOWHERE);
    const back = [
      { kind: 'phone', value: '+4915112345678' },
      { kind: 'external_references', value: '["till","A"]' },
      { kind: 'external_references', value: '["till","C"]' },
    ];
    expect(findMovedValues(both[0], survivor)).toEqual({ added: [], released: back });
    expect(findMovedValues(both[1], other)).toEqual({ added: back, released: [] });
  });

  const update = (survivor: Customer, changes: Parameters<typeof updateCustomer>[1]) =>
    updateCustomer(survivor, changes, { timeZone: 'UTC', country: null, now: NOW });

  it('keeps what was changed since, and returns references in their current state', () => {
    const { events, both } = mergeBoth(OWN, FULL);
    const changes = update(both[0], {
      phone: '+4915187654321',
      birthday: '1991-01-01',
      metadata: { b: 3 },
      externalReferences: [{ source: 'till', externalId: 'A', metadata: { seen: true } }],
    });
    const now = person(1, OWN, ...(events[0] ?? []), ...changes);
    const { survivor, other } = unmergeCustomers(now, both[1], NOWHERE);
    expect(person(1, OWN, ...(events[0] ?? []), ...changes, ...survivor)).toMatchObject({
      phone: '+4915187654321',
      birthday: '1991-01-01',
      metadata: { a: 1, b: 3 },
      externalReferences: [reference('B')],
    });
    expect(person(2, FULL, ...(events[1] ?? []), ...other)).toMatchObject({
      phone: THEIRS.phone,
      birthday: THEIRS.birthday,
      externalReferences: [{ externalId: 'A', metadata: { seen: true } }, reference('C')],
    });
  });

  it('treats two spellings of an e-mail address as the same', () => {
    const { both } = mergeBoth({ phone: '1' }, { email: 'Two@x.example' });
    const changedSurvivor = { ...both[0], email: 'two@X.example' };
    const { survivor, other } = unmergeCustomers(changedSurvivor, both[1], NOWHERE);
    expect([getPersonal(survivor), getPersonal(other)]).toEqual([
      { email: null },
      { email: 'two@X.example' },
    ]);
  });

  it('treats two notations of a phone number as the same, and returns the current one', () => {
    const { both } = mergeBoth({ email: 'one@x.example' }, { phone: '01711234567' });
    const normalizedSurvivor = { ...both[0], phone: '+491711234567' };
    const back = unmergeCustomers(normalizedSurvivor, both[1], { country: 'AT' });
    expect([getPersonal(back.survivor), getPersonal(back.other)]).toEqual([
      { phone: null },
      { phone: '+491711234567' },
    ]);
    const changedSurvivor = { ...both[0], phone: '+4915187654321' };
    const own = unmergeCustomers(changedSurvivor, both[1], { country: 'DE' });
    expect([getPersonal(own.survivor), getPersonal(own.other)]).toEqual([
      {},
      { phone: '+491711234567' },
    ]);
  });

  it('leaves the survivor a number that was changed since, and restores the original one of the other', () => {
    const { both } = mergeBoth({ phone: '01711234567' }, { phone: '+491711234567' });
    for (const phone of ['+436641234567', null]) {
      const changedSurvivor = { ...both[0], email: 'one@x.example', phone };
      const back = unmergeCustomers(changedSurvivor, both[1], { country: 'DE' });
      expect([getPersonal(back.survivor), getPersonal(back.other)]).toEqual([
        {},
        { phone: '+491711234567' },
      ]);
      expect(findMovedValues(both[1], back.other)).toEqual({
        added: [{ kind: 'phone', value: '+491711234567' }],
        released: [{ kind: 'phone', value: '01711234567' }],
      });
    }
  });

  it('refuses to leave the survivor without any contact', () => {
    const { both } = mergeBoth(OWN, FULL);
    const { errors } = catchRejected(() =>
      unmergeCustomers({ ...both[0], email: null }, both[1], NOWHERE),
    );
    expect(Object.keys(errors)).toEqual(['base']);
  });

  it('undoes several merges one by one, the last one first', () => {
    const second = { lastName: 'Tal', metadata: { b: 2 }, externalReferences: [reference('B')] };
    const third = { phone: '+4915112345678', metadata: { b: 3, c: 3 } };
    const events = [customerCreated(1, { email: 'one@x.example' })];
    const [two, three] = [person(2, second), person(3, third)];
    const state = () => scenario(customer, ...events).state();
    const first = mergeCustomers(state(), two, CARDS);
    events.push(...first.survivor);
    const last = mergeCustomers(state(), three, CARDS);
    events.push(...last.survivor);
    const additions = { cards: CARDS, fields: ['lastName'], metadataKeys: ['b'] };
    const merges = [
      { ...additions, customerId: 2, references: [{ source: 'till', externalId: 'B' }] },
      { customerId: 3, cards: CARDS, fields: ['phone'], metadataKeys: ['c'], references: [] },
    ];
    expect(state()).toMatchObject({ merges, holds: [2, 3], lastName: 'Tal', phone: third.phone });
    const away = person(3, third, ...last.other);
    events.push(...unmergeCustomers(state(), away, NOWHERE).survivor);
    expect(state()).toMatchObject({ merges: [merges[0]], holds: [2, 3], phone: null });
    events.push(...mergeCustomers(state(), three, CARDS).survivor);
    expect(state()).toMatchObject({ merges, holds: [2, 3] });
    events.push(...unmergeCustomers(state(), away, NOWHERE).survivor);
    events.push(...unmergeCustomers(state(), person(2, second, ...first.other), NOWHERE).survivor);
    expect(state()).toMatchObject({ merges: [], lastName: null, externalReferences: [] });
  });

  it('has no personal data to return once a customer was erased', () => {
    const { events, both } = mergeBoth(OWN, FULL);
    const erasedCustomers = [
      person(1, OWN, ...(events[0] ?? []), ...eraseCustomer(both[0])),
      person(2, FULL, ...(events[1] ?? []), ...eraseCustomer(both[1])),
    ];
    const nothing = { fields: [], metadataKeys: [], references: [] };
    expect(erasedCustomers).toMatchObject([
      { firstName: 'Erased', merges: [{ customerId: 2, cards: CARDS, ...nothing }] },
      { firstName: 'Erased', mergedInto: { customerId: 1, given: {} } },
    ]);
    expect(Object.keys(erasedCustomers[1]?.mergedInto?.given ?? { none: true })).toEqual([]);
  });

  it('refuses a pair that is not merged, and any merge but the last', () => {
    const { both } = mergeBoth(OWN, FULL);
    const [survivor, other] = both;
    for (const pair of [
      [other, survivor],
      [survivor, person(3, {})],
      [person(3, {}), other],
    ] as const) {
      expect(Object.keys(catchRejected(() => unmergeCustomers(...pair, NOWHERE)).errors)).toEqual([
        'base',
      ]);
    }
    const twice = {
      ...survivor,
      merges: [
        ...(survivor.merges ?? []),
        { customerId: 3, cards: CARDS, fields: [], metadataKeys: [], references: [] },
      ],
    };
    expect(catchRejected(() => unmergeCustomers(twice, other, NOWHERE)).resolution).toContain(
      'customer 3 first',
    );
  });
});

describe('decideMergedAway', () => {
  const { events } = mergeBoth(MINE, { ...THEIRS, externalReferences: [reference('A')] });
  const decide = (state: Customer) =>
    decideMergedAway({ plannedEvents: events[1] ?? [], state, earlierEvents: events[0] ?? [] });

  it('keeps the planned events when the planned values are unchanged', () => {
    const state = person(2, { ...THEIRS, externalReferences: [reference('A')], lastName: 'Neu' });
    expect(decide(state)).toEqual(events[1]);
  });

  it('does not take values that were changed or added since', () => {
    const state = person(2, {
      ...THEIRS,
      phone: '+4915187654321',
      externalReferences: [reference('A'), reference('D')],
    });
    expect(decide(state)).toMatchObject([
      { data: { personal: { externalReferences: [reference('D')] } } },
    ]);
    expect(getPersonal(decide(state))).not.toHaveProperty('phone');
  });

  it('exchanges two notations of a phone number only while the number is the same', () => {
    const plan = mergeBoth({ phone: '01711234567' }, { phone: '+491711234567' }).events;
    const decide = (phone: string) =>
      decideMergedAway({
        plannedEvents: plan[1] ?? [],
        state: person(2, { phone }),
        earlierEvents: plan[0] ?? [],
      });
    expect(getPersonal(decide('+491711234567'))).toEqual({ phone: '01711234567' });
    expect(getPersonal(decide('+436641234567'))).toEqual({});
  });
});

function getPersonal([event]: CustomerEvent[]): unknown {
  return event && 'personal' in event.data ? event.data.personal : undefined;
}
