import { describe, expect, it } from '@jest/globals';
import { NotFoundError } from '#platform/kernel/errors.js';
import { mergeMetadata, findMetadataIssue } from '#platform/kernel/metadata.js';
import { AT, scenario } from '../../../test/support/fixtures/aggregate-scenario.js';
import { isEmail, normalizePhone } from './contact.js';
import {
  createCustomer,
  customer,
  eraseCustomer,
  findMovedValues,
  listUniqueValues,
  updateCustomer,
  type Customer,
  type CustomerChanges,
} from './customer.js';
import { findReferencesIssue, sortReferences, upsertReferences } from './external-references.js';
import { findCustomerSource } from './customer-source.js';
import { parseSearchTerm } from './customer-list.dto.js';
import type { CustomerEvent } from './customer.events.js';
import { foldCase, createSearchKeys } from './search-keys.js';

const NOW = new Date('2026-03-01T12:00:00.000Z');

const HERE = { timeZone: 'UTC', country: null, now: NOW };

const anna = {
  customerId: 3,
  accountId: 1,
  source: 'api' as const,
  marketingConsent: true,
  smsConsent: false,
  sendCardLinks: false,
  agreed: null,
  signup: null,
  unconfirmedConsents: [],
  personal: {
    firstName: 'Ännä',
    lastName: 'Öz',
    email: 'A@x.de',
    phone: '+4915112345678',
    birthday: null,
    metadata: {},
    externalReferences: [],
  },
};
const customerCreated: CustomerEvent = { type: 'CustomerCreated', data: anna };

const LATER = '2026-03-02T10:00:00.000Z';

describe('findCustomerSource', () => {
  it.each([
    ['poster', 'poster'],
    ['staff', 'app'],
    ['owner', 'app'],
    ['import', 'import'],
    ['api', 'api'],
    ['pos', 'api'],
    ['cli', 'api'],
  ] as const)('maps the channel %s to the source %s', (channel, source) => {
    expect(findCustomerSource(channel)).toBe(source);
  });
});

describe('a customer', () => {
  it('has the name of existing streams, and the times of its events', () => {
    expect(customer.name).toBe('customer');
    const customerUpdated: CustomerEvent = {
      type: 'CustomerUpdated',
      data: { customerId: 3, personal: { lastName: null } },
    };
    const references: CustomerEvent = {
      type: 'CustomerReferencesUpdated',
      data: { customerId: 3, personal: { externalReferences: [] } },
    };
    expect(scenario(customer, customerCreated).state()).toMatchObject({
      createdAt: AT,
      updatedAt: AT,
    });
    for (const event of [customerUpdated, references]) {
      expect(scenario(customer, customerCreated, { ...event, at: LATER }).state()).toMatchObject({
        id: 3,
        accountId: 1,
        createdAt: AT,
        updatedAt: LATER,
      });
    }
  });
});

describe('createCustomer', () => {
  it('records the customer, and derives the search keys', () => {
    scenario(customer)
      .when(() => createCustomer(anna, HERE))
      .then(customerCreated);
    scenario(customer)
      .when(() => createCustomer(anna, HERE))
      .thenState({
        id: 3,
        email: 'A@x.de',
        searchText: 'ännä öz\na@x.de',
        phoneDigits: '4915112345678',
        createdAt: AT,
      });
  });

  it('normalizes the phone number for the store’s country', () => {
    const local = { ...anna, personal: { ...anna.personal, phone: '0171 / 123 45 67' } };
    scenario(customer)
      .when(() => createCustomer(local, { ...HERE, country: 'DE' }))
      .thenState({ phone: '+491711234567' });
    scenario(customer)
      .when(() => createCustomer(local, HERE))
      .thenState({ phone: '01711234567' });
    scenario(customer, customerCreated)
      .when((state) => updateCustomer(state, { phone: '0171 1234567' }, { ...HERE, country: 'DE' }))
      .thenState({ phone: '+491711234567' });
    scenario(customer, customerCreated)
      .when((state) =>
        updateCustomer(state, { phone: '0151 12345678' }, { ...HERE, country: 'DE' }),
      )
      .then();
  });

  it('requires an e-mail address or a phone number', () => {
    const personal = { ...anna.personal, email: null, phone: null };
    scenario(customer)
      .when(() => createCustomer({ ...anna, personal }, HERE))
      .thenRejected({ fields: ['base'] });
    scenario(customer)
      .when(() => createCustomer({ ...anna, personal: { ...personal, phone: '123' } }, HERE))
      .thenState({ phone: '123', email: null });
  });

  it('leads to a state without personal data when the key is destroyed', () => {
    const unreadable = { ...customerCreated, data: { ...anna, personal: null } };
    expect(scenario(customer, unreadable).state()).toMatchObject({
      firstName: 'Erased',
      email: null,
      phone: null,
      searchText: 'erased\n',
      phoneDigits: null,
      marketingConsent: true,
    });
  });
});

describe('updateCustomer', () => {
  const update =
    (changes: CustomerChanges, here = HERE) =>
    (state: Customer | undefined): CustomerEvent[] =>
      updateCustomer(state, changes, here);
  const customerUpdated = (
    personal: object | null,
    consents: { marketingConsent?: boolean; smsConsent?: boolean } = {},
  ): CustomerEvent => ({ type: 'CustomerUpdated', data: { customerId: 3, ...consents, personal } });

  it('records only what changes', () => {
    scenario(customer, customerCreated)
      .when(update({ firstName: 'Ännä', lastName: null, marketingConsent: true, smsConsent: true }))
      .then(customerUpdated({ lastName: null }, { smsConsent: true }));
    scenario(customer, customerCreated)
      .when(update({ smsConsent: true }))
      .then(customerUpdated({}, { smsConsent: true }));
    scenario(customer, customerCreated)
      .when(update({ lastName: 'Şahin', email: null }))
      .thenState({
        firstName: 'Ännä',
        lastName: 'Şahin',
        email: null,
        phone: '+4915112345678',
        searchText: 'ännä şahin\n',
      });
  });

  it('records nothing when nothing changes', () => {
    scenario(customer, customerCreated).when(update({})).then();
    scenario(customer, customerCreated)
      .when(
        update({
          email: 'A@x.de',
          birthday: null,
          metadata: { gone: null },
          externalReferences: [],
        }),
      )
      .then();
    const reference = { source: 'pos', externalId: '1', metadata: { a: { b: 1 } } };
    scenario(
      customer,
      customerCreated,
      customerUpdated({
        metadata: { n: 1 },
        externalReferences: [{ ...reference, createdAt: AT, updatedAt: AT }],
      }),
    )
      .when(
        update({
          externalReferences: [reference, { ...reference, metadata: {} }],
          metadata: { n: 1 },
        }),
      )
      .then();
  });

  it('refuses to remove the only contact, but accepts its replacement', () => {
    scenario(customer, customerCreated)
      .when(update({ email: null, phone: null }))
      .thenRejected({ fields: ['base'] });
    scenario(customer, customerCreated, customerUpdated({ phone: null }))
      .when(update({ email: null }))
      .thenRejected({ fields: ['base'] });
    scenario(customer, customerCreated, customerUpdated({ phone: null }))
      .when(update({ phone: '1', email: null }))
      .then(customerUpdated({ phone: '1', email: null }));
  });

  it('merges metadata, and limits the keys and size of the result', () => {
    const many = (count: number, from = 0) =>
      Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${from + i}`, from + i]));
    const fifty = customerUpdated({ metadata: many(50) });
    scenario(customer, customerCreated, fifty)
      .when(update({ metadata: { k0: 'new' } }))
      .then(customerUpdated({ metadata: { ...many(50), k0: 'new' } }));
    scenario(customer, customerCreated, fifty)
      .when(update({ metadata: { more: 1 } }))
      .thenRejected({ fields: ['metadata'] });
    scenario(customer, customerCreated, fifty)
      .when(update({ metadata: { more: 1, k0: null } }))
      .then(customerUpdated({ metadata: { ...many(49, 1), more: 1 } }));
    const large = customerUpdated({ metadata: { a: 'x'.repeat(10_000) } });
    scenario(customer, customerCreated, large)
      .when(update({ metadata: { b: 'x'.repeat(10_000) } }))
      .thenRejected({ fields: ['metadata'] });
    scenario(customer, customerCreated, large)
      .when(update({ metadata: { b: 'x'.repeat(10_000), a: null } }))
      .thenState({ metadata: { b: 'x'.repeat(10_000) } });
  });

  it('limits the number and size of the references', () => {
    const references = (count: number, metadata = {}) =>
      Array.from({ length: count }, (_, i) => ({
        source: 'pos',
        externalId: String(i),
        metadata,
      }));
    const hundred = customerUpdated({
      externalReferences: references(100).map((entry) => ({
        ...entry,
        createdAt: AT,
        updatedAt: AT,
      })),
    });
    scenario(customer, customerCreated, hundred)
      .when(update({ externalReferences: [{ source: 'crm', externalId: '1', metadata: {} }] }))
      .thenRejected({ fields: ['external_references'] });
    scenario(customer, customerCreated, hundred)
      .when(update({ externalReferences: references(1, { a: 1 }) }))
      .thenState({ updatedAt: AT });
    scenario(customer, customerCreated)
      .when(update({ externalReferences: references(20, { a: 'x'.repeat(15_000) }) }))
      .thenRejected({ fields: ['external_references'] });
  });

  it('limits the metadata of each reference, and the size of all references together', () => {
    const of = (metadata: object) => [
      {
        source: 'pos',
        externalId: 'secret',
        metadata: { ...metadata },
        createdAt: AT,
        updatedAt: AT,
      },
    ];
    const keys = Object.fromEntries(Array.from({ length: 51 }, (_, i) => [`k${i}`, i]));
    scenario(customer, customerCreated)
      .when(update({ externalReferences: of(keys) }))
      .thenRejected({
        errors: { external_references: ['of pos: metadata must have at most 50 keys'] },
      });
    const three = [0, 1, 2].flatMap((i) =>
      of({}).map((data) => ({ ...data, externalId: `${i}`, metadata: { a: 'x'.repeat(10_000) } })),
    );
    const room = 32 * 1024 - Buffer.byteLength(JSON.stringify(three));
    const createFilled = (more: number) =>
      three.map((reference, i) =>
        i === 0 ? { ...reference, createdAt: reference.createdAt + 'x'.repeat(more) } : reference,
      );
    expect(findReferencesIssue(createFilled(room))?.message).toBeUndefined();
    expect(findReferencesIssue(createFilled(room + 1))?.message).toBe(
      'must come to at most 32 KiB for one customer, metadata included',
    );
  });

  it('records CustomerReferencesUpdated when only references change', () => {
    const reference = { source: 'pos', externalId: '1', metadata: {} };
    const now = HERE.now.toISOString();
    const storedReference = { ...reference, createdAt: now, updatedAt: now };
    const references: CustomerEvent = {
      type: 'CustomerReferencesUpdated',
      data: { customerId: 3, personal: { externalReferences: [storedReference] } },
    };
    scenario(customer, customerCreated)
      .when(update({ externalReferences: [reference] }))
      .then(references);
    scenario(customer, customerCreated)
      .when(update({ externalReferences: [reference], lastName: null }))
      .then(customerUpdated({ externalReferences: [storedReference], lastName: null }));
    scenario(customer, customerCreated)
      .when(update({ externalReferences: [reference], marketingConsent: false }))
      .then(
        customerUpdated({ externalReferences: [storedReference] }, { marketingConsent: false }),
      );
    scenario(customer, customerCreated, references)
      .when(update({ externalReferences: [reference] }))
      .then();
  });

  it('reports all errors at once', () => {
    scenario(customer, customerCreated)
      .when(
        update({
          email: null,
          phone: null,
          birthday: '2026-03-02',
          metadata: { a: 'x'.repeat(17_000) },
        }),
      )
      .thenRejected({
        errors: {
          base: ['An e-mail address or a phone number is needed'],
          birthday: ['must not be in the future'],
          metadata: ['must have at most 16 KiB'],
        },
      });
  });

  it("compares a birthday with the current day in the store's time zone", () => {
    const late = new Date('2026-03-01T23:30:00.000Z');
    scenario(customer, customerCreated)
      .when(update({ birthday: '2026-03-02' }, { timeZone: 'UTC', country: null, now: late }))
      .thenRejected({ fields: ['birthday'] });
    scenario(customer, customerCreated)
      .when(
        update({ birthday: '2026-03-02' }, { timeZone: 'Europe/Berlin', country: null, now: late }),
      )
      .then(customerUpdated({ birthday: '2026-03-02' }));
  });

  it('throws NotFoundError when there is no customer', () => {
    scenario(customer)
      .when((state) => updateCustomer(state, {}, HERE))
      .thenThrows(NotFoundError);
  });

  it('leads to a state without personal data when the key is destroyed', () => {
    const unreadable = { ...customerCreated, data: { ...anna, personal: null } };
    expect(
      scenario(customer, unreadable, customerUpdated(null, { smsConsent: true })).state(),
    ).toMatchObject({
      firstName: 'Erased',
      email: null,
      smsConsent: true,
    });
  });
});

describe('eraseCustomer', () => {
  const customerErased: CustomerEvent = { type: 'CustomerErased', data: { customerId: 3 } };
  const customerUpdated: CustomerEvent = {
    type: 'CustomerUpdated',
    data: { customerId: 3, smsConsent: true, personal: { lastName: 'Berg', metadata: { a: 1 } } },
  };

  it('records the erasure without personal data', () => {
    scenario(customer, customerCreated).when(eraseCustomer).then(customerErased);
  });

  it('removes personal data and search keys from the state', () => {
    expect(
      scenario(customer, customerCreated, customerUpdated, {
        ...customerErased,
        at: LATER,
      }).state(),
    ).toEqual({
      id: 3,
      accountId: 1,
      firstName: 'Erased',
      lastName: null,
      email: null,
      phone: null,
      birthday: null,
      metadata: {},
      externalReferences: [],
      marketingConsent: false,
      smsConsent: false,
      unconfirmedConsents: [],
      createdAt: AT,
      updatedAt: LATER,
      erasedAt: LATER,
      searchText: '',
      phoneDigits: null,
    });
  });

  it('leads to the same state whether or not earlier events can still be decrypted', () => {
    const [unreadableCreated, unreadableUpdated] = [customerCreated, customerUpdated].map(
      (event) => ({
        ...event,
        data: { ...event.data, personal: null },
      }),
    ) as [CustomerEvent, CustomerEvent];
    expect(
      scenario(customer, unreadableCreated, unreadableUpdated, customerErased).state(),
    ).toEqual(scenario(customer, customerCreated, customerUpdated, customerErased).state());
  });

  it('records nothing for an erased customer', () => {
    scenario(customer, customerCreated, customerErased).when(eraseCustomer).then();
  });

  it('throws NotFoundError when there is no customer', () => {
    scenario(customer).when(eraseCustomer).thenThrows(NotFoundError);
  });

  it('makes later updates fail with customer_erased', () => {
    scenario(customer, customerCreated, customerErased)
      .when((state) => updateCustomer(state, { firstName: 'Anna' }, HERE))
      .thenRejected({ fields: ['base'], code: 'customer_erased' });
  });
});

describe('findMovedValues', () => {
  const state = scenario(customer, customerCreated).state();
  const reference = { source: 'pos', externalId: '1', metadata: {}, createdAt: AT, updatedAt: AT };
  const findMovedBy = (personal: object) =>
    findMovedValues(state, [{ type: 'CustomerUpdated', data: { customerId: 3, personal } }]);

  it('adds new unique values and releases those that are gone', () => {
    expect(findMovedValues(undefined, [customerCreated])).toEqual({
      added: [
        { kind: 'email', value: 'a@x.de' },
        { kind: 'phone', value: '+4915112345678' },
      ],
      released: [],
    });
    expect(findMovedBy({ email: 'b@x.de', phone: null, externalReferences: [reference] })).toEqual({
      added: [
        { kind: 'email', value: 'b@x.de' },
        { kind: 'external_references', value: '["pos","1"]' },
      ],
      released: [
        { kind: 'email', value: 'a@x.de' },
        { kind: 'phone', value: '+4915112345678' },
      ],
    });
  });

  it('moves nothing when only the case of a value changes', () => {
    expect(findMovedBy({ email: 'a@X.DE' })).toEqual({ added: [], released: [] });
    expect(findMovedValues(state, [])).toEqual({ added: [], released: [] });
  });
});

describe('external references', () => {
  const at = NOW.toISOString();
  const reference = (source: string, externalId: string, metadata = {}) => ({
    source,
    externalId,
    metadata,
  });

  it('are upserted one after another, merged and sorted', () => {
    const current = [{ ...reference('pos', '2', { a: 1 }), createdAt: AT, updatedAt: AT }];
    expect(
      upsertReferences(
        current,
        [
          reference('pos', '2', { b: 2 }),
          reference('crm', '9'),
          reference('pos', '2', { a: null }),
        ],
        NOW,
      ),
    ).toEqual([
      { ...reference('crm', '9'), createdAt: at, updatedAt: at },
      { ...reference('pos', '2', { b: 2 }), createdAt: AT, updatedAt: at },
    ]);
  });

  it('are sorted by source and id', () => {
    const order = ['a 1', 'a 2', 'b 0', 'b 1', 'c 0', 'd 5'].map((name) => {
      const [source = '', externalId = ''] = name.split(' ');
      return { ...reference(source, externalId), createdAt: AT, updatedAt: AT };
    });
    for (const permutation of [
      [5, 4, 3, 2, 1, 0],
      [1, 0, 3, 2, 5, 4],
      [2, 5, 0, 3, 1, 4],
    ]) {
      expect(sortReferences(permutation.flatMap((i) => order[i] ?? []))).toEqual(order);
    }
  });
});

describe('metadata', () => {
  it('has at most 50 keys and 16 KiB', () => {
    const keys = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, 1]));
    expect(findMetadataIssue(keys(50))?.message).toBeUndefined();
    expect(findMetadataIssue(keys(51))?.message).toBe('must have at most 50 keys');
    expect(findMetadataIssue({ a: 'é'.repeat(8_180) })?.message).toBeUndefined();
    expect(findMetadataIssue({ a: 'é'.repeat(8_200) })?.message).toBe('must have at most 16 KiB');
  });

  it('is merged shallowly, and a null removes its key', () => {
    expect(mergeMetadata({ a: 1, b: { c: 1 } }, { a: null, b: { d: 2 } })).toEqual({ b: { d: 2 } });
  });
});

describe('normalizePhone', () => {
  it.each([
    ['+49 151 1234567', '+491511234567'],
    ['+44 (0)20 7946 0958', '+442079460958'],
    ['0151 / 123-45', '015112345'],
    ['+15550100', '+15550100'],
    ['call me', undefined],
    ['+', undefined],
    ['+12', undefined],
  ])('normalizes %s to %s', (phone, normal) => {
    expect(normalizePhone(phone, null)).toBe(normal);
  });
});

describe('isEmail', () => {
  it.each(['a@b.de', 'ü@münchen.example', "o'neil+tag@sub.example.com"])('accepts %s', (email) => {
    expect(isEmail(email)).toBe(true);
  });

  it.each(['a@b', '@b.de', 'a b@c.de', 'a@b..de', 'a@@b.de', 'x'.repeat(250) + '@b.de'])(
    'refuses %s',
    (email) => {
      expect(isEmail(email)).toBe(false);
    },
  );
});

describe('createSearchKeys', () => {
  it.each([
    ['Grace@Müller.de', 'grace\ngrace@müller.de\ngrace@xn--mller-kva.de'],
    ['grace@xn--mller-kva.de', 'grace\ngrace@müller.de\ngrace@xn--mller-kva.de'],
    ['Grace@Straße.de', 'grace\ngrace@strasse.de\ngrace@xn--strae-oqa.de'],
    ['GRACE@Example.com', 'grace\ngrace@example.com'],
    ['grace@of.old..example', 'grace\ngrace@of.old..example'],
    [null, 'grace\n'],
  ])('creates for the e-mail address %s the search text %j', (email, searchText) => {
    const personal = { ...anna.personal, firstName: 'Grace', lastName: null, email };
    expect(createSearchKeys(personal).searchText).toBe(searchText);
  });
});

describe('listUniqueValues', () => {
  it('lists the same value for every spelling of an e-mail domain', () => {
    const [one, other] = ['A@MÜLLER.de', 'a@xn--mller-kva.de'].map((email) =>
      listUniqueValues({ ...anna.personal, email, phone: null, externalReferences: [] }),
    );
    expect(one).toEqual([{ kind: 'email', value: 'a@xn--mller-kva.de' }]);
    expect(other).toEqual(one);
  });
});

describe('foldCase', () => {
  it.each([
    ['ÄÖÜ É', 'äöü é'],
    ['STRASSE', 'straße'],
    ['İstanbul', 'ISTANBUL'],
    ['ısparta', 'Isparta'],
    ['ΟΔΥΣΣΕΥΣ', 'οδυσσευς'],
    ['σ', 'ς'],
    ['RENE\u0301E', 'renée'],
    ['ｗｉｄｅ', 'WIDE'],
  ])('folds %s and %s alike', (one, other) => {
    expect(foldCase(one)).toBe(foldCase(other));
    expect(foldCase(foldCase(one))).toBe(foldCase(one));
  });
});

describe('parseSearchTerm', () => {
  it('escapes the wildcards % and _', () => {
    expect(parseSearchTerm('50%_a\\', null).text).toBe(String.raw`%50\%\_a\\%`);
  });

  it('returns digits only for a term without letters', () => {
    expect(parseSearchTerm('+49 (151)', null).digits).toEqual(['%49151%']);
    expect(parseSearchTerm('49a', null).digits).toEqual([]);
    expect(parseSearchTerm('+-', null).digits).toEqual([]);
    expect(parseSearchTerm('0151', 'DE').digits).toEqual(['%0151%', '49151%']);
  });

  it('recognizes a UUID', () => {
    expect(parseSearchTerm('960fb88e-7dec-4e99-be20-c4a5dde82a89', null).uuid).not.toBeNull();
    expect(parseSearchTerm('960fb88e', null).uuid).toBeNull();
  });
});
