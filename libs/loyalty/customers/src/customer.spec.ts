import { describe, expect, it } from '@jest/globals';
import { NotFoundError } from '#kernel/errors.js';
import { mergeMetadata, findMetadataError } from '#kernel/metadata.js';
import { AT, scenario } from '../../../../test/support/fixtures/aggregate-scenario.js';
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
import { findReferencesError, sortReferences, upsertReferences } from './external-references.js';
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
const created: CustomerEvent = { type: 'CustomerCreated', data: anna };

const LATER = '2026-03-02T10:00:00.000Z';

describe('where a customer comes from', () => {
  it.each([
    ['poster', 'poster'],
    ['staff', 'app'],
    ['owner', 'app'],
    ['import', 'import'],
    ['api', 'api'],
    ['pos', 'api'],
    ['cli', 'api'],
  ] as const)('follows from the channel: %s', (channel, source) => {
    expect(findCustomerSource(channel)).toBe(source);
  });
});

describe('a customer', () => {
  it('is found in existing histories, with the times of its events', () => {
    expect(customer.name).toBe('customer');
    const updated: CustomerEvent = {
      type: 'CustomerUpdated',
      data: { customerId: 3, personal: { lastName: null } },
    };
    const references: CustomerEvent = {
      type: 'CustomerReferencesUpdated',
      data: { customerId: 3, personal: { externalReferences: [] } },
    };
    expect(scenario(customer, created).state()).toMatchObject({ createdAt: AT, updatedAt: AT });
    for (const event of [updated, references]) {
      expect(scenario(customer, created, { ...event, at: LATER }).state()).toMatchObject({
        id: 3,
        accountId: 1,
        createdAt: AT,
        updatedAt: LATER,
      });
    }
  });
});

describe('create', () => {
  it('records the person', () => {
    scenario(customer)
      .when(() => createCustomer(anna, HERE))
      .then(created);
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

  it('reads the phone number as one of the store’s country', () => {
    const local = { ...anna, personal: { ...anna.personal, phone: '0171 / 123 45 67' } };
    scenario(customer)
      .when(() => createCustomer(local, { ...HERE, country: 'DE' }))
      .thenState({ phone: '+491711234567' });
    scenario(customer)
      .when(() => createCustomer(local, HERE))
      .thenState({ phone: '01711234567' });
    scenario(customer, created)
      .when((state) => updateCustomer(state, { phone: '0171 1234567' }, { ...HERE, country: 'DE' }))
      .thenState({ phone: '+491711234567' });
    scenario(customer, created)
      .when((state) =>
        updateCustomer(state, { phone: '0151 12345678' }, { ...HERE, country: 'DE' }),
      )
      .then();
  });

  it('needs one way to reach the person', () => {
    const personal = { ...anna.personal, email: null, phone: null };
    scenario(customer)
      .when(() => createCustomer({ ...anna, personal }, HERE))
      .thenRejected({ fields: ['base'] });
    scenario(customer)
      .when(() => createCustomer({ ...anna, personal: { ...personal, phone: '123' } }, HERE))
      .thenState({ phone: '123', email: null });
  });

  it('shows nothing of a person whose key is destroyed', () => {
    const erased = { ...created, data: { ...anna, personal: null } };
    expect(scenario(customer, erased).state()).toMatchObject({
      firstName: 'Erased',
      email: null,
      phone: null,
      searchText: 'erased\n',
      phoneDigits: null,
      marketingConsent: true,
    });
  });
});

describe('update', () => {
  const update =
    (changes: CustomerChanges, here = HERE) =>
    (state: Customer | undefined): CustomerEvent[] =>
      updateCustomer(state, changes, here);
  const updated = (
    personal: object | null,
    consents: { marketingConsent?: boolean; smsConsent?: boolean } = {},
  ): CustomerEvent => ({ type: 'CustomerUpdated', data: { customerId: 3, ...consents, personal } });

  it('records what changed and nothing else', () => {
    scenario(customer, created)
      .when(update({ firstName: 'Ännä', lastName: null, marketingConsent: true, smsConsent: true }))
      .then(updated({ lastName: null }, { smsConsent: true }));
    scenario(customer, created)
      .when(update({ smsConsent: true }))
      .then(updated({}, { smsConsent: true }));
    scenario(customer, created)
      .when(update({ lastName: 'Şahin', email: null }))
      .thenState({
        firstName: 'Ännä',
        lastName: 'Şahin',
        email: null,
        phone: '+4915112345678',
        searchText: 'ännä şahin\n',
      });
  });

  it('is no event when it is already so', () => {
    scenario(customer, created).when(update({})).then();
    scenario(customer, created)
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
      created,
      updated({
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

  it('leaves one way to reach the person', () => {
    scenario(customer, created)
      .when(update({ email: null, phone: null }))
      .thenRejected({ fields: ['base'] });
    scenario(customer, created, updated({ phone: null }))
      .when(update({ email: null }))
      .thenRejected({ fields: ['base'] });
    scenario(customer, created, updated({ phone: null }))
      .when(update({ phone: '1', email: null }))
      .then(updated({ phone: '1', email: null }));
  });

  it('merges metadata, and judges what it comes to', () => {
    const many = (count: number, from = 0) =>
      Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${from + i}`, from + i]));
    const fifty = updated({ metadata: many(50) });
    scenario(customer, created, fifty)
      .when(update({ metadata: { k0: 'new' } }))
      .then(updated({ metadata: { ...many(50), k0: 'new' } }));
    scenario(customer, created, fifty)
      .when(update({ metadata: { more: 1 } }))
      .thenRejected({ fields: ['metadata'] });
    scenario(customer, created, fifty)
      .when(update({ metadata: { more: 1, k0: null } }))
      .then(updated({ metadata: { ...many(49, 1), more: 1 } }));
    const large = updated({ metadata: { a: 'x'.repeat(10_000) } });
    scenario(customer, created, large)
      .when(update({ metadata: { b: 'x'.repeat(10_000) } }))
      .thenRejected({ fields: ['metadata'] });
    scenario(customer, created, large)
      .when(update({ metadata: { b: 'x'.repeat(10_000), a: null } }))
      .thenState({ metadata: { b: 'x'.repeat(10_000) } });
  });

  it('adds references up to what one customer may have', () => {
    const references = (count: number, metadata = {}) =>
      Array.from({ length: count }, (_, i) => ({
        source: 'pos',
        externalId: String(i),
        metadata,
      }));
    const hundred = updated({
      externalReferences: references(100).map((one) => ({ ...one, createdAt: AT, updatedAt: AT })),
    });
    scenario(customer, created, hundred)
      .when(update({ externalReferences: [{ source: 'crm', externalId: '1', metadata: {} }] }))
      .thenRejected({ fields: ['external_references'] });
    scenario(customer, created, hundred)
      .when(update({ externalReferences: references(1, { a: 1 }) }))
      .thenState({ updatedAt: AT });
    scenario(customer, created)
      .when(update({ externalReferences: references(20, { a: 'x'.repeat(15_000) }) }))
      .thenRejected({ fields: ['external_references'] });
  });

  it('judges references as a whole, and the metadata of each', () => {
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
    scenario(customer, created)
      .when(update({ externalReferences: of(keys) }))
      .thenRejected({
        errors: { external_references: ['of pos: metadata must have at most 50 keys'] },
      });
    const three = [0, 1, 2].flatMap((i) =>
      of({}).map((one) => ({ ...one, externalId: `${i}`, metadata: { a: 'x'.repeat(10_000) } })),
    );
    const room = 32 * 1024 - Buffer.byteLength(JSON.stringify(three));
    const filled = (more: number) =>
      three.map((one, i) =>
        i === 0 ? { ...one, createdAt: one.createdAt + 'x'.repeat(more) } : one,
      );
    expect(findReferencesError(filled(room))).toBeUndefined();
    expect(findReferencesError(filled(room + 1))).toBe(
      'must come to at most 32 KiB for one customer, metadata included',
    );
  });

  it('tells a change of references alone apart', () => {
    const reference = { source: 'pos', externalId: '1', metadata: {} };
    const now = HERE.now.toISOString();
    const stored = { ...reference, createdAt: now, updatedAt: now };
    const references: CustomerEvent = {
      type: 'CustomerReferencesUpdated',
      data: { customerId: 3, personal: { externalReferences: [stored] } },
    };
    scenario(customer, created)
      .when(update({ externalReferences: [reference] }))
      .then(references);
    scenario(customer, created)
      .when(update({ externalReferences: [reference], lastName: null }))
      .then(updated({ externalReferences: [stored], lastName: null }));
    scenario(customer, created)
      .when(update({ externalReferences: [reference], marketingConsent: false }))
      .then(updated({ externalReferences: [stored] }, { marketingConsent: false }));
    scenario(customer, created, references)
      .when(update({ externalReferences: [reference] }))
      .then();
  });

  it('says every fault at once', () => {
    scenario(customer, created)
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

  it("counts birthdays by the day in the store's time zone", () => {
    const late = new Date('2026-03-01T23:30:00.000Z');
    scenario(customer, created)
      .when(update({ birthday: '2026-03-02' }, { timeZone: 'UTC', country: null, now: late }))
      .thenRejected({ fields: ['birthday'] });
    scenario(customer, created)
      .when(
        update({ birthday: '2026-03-02' }, { timeZone: 'Europe/Berlin', country: null, now: late }),
      )
      .then(updated({ birthday: '2026-03-02' }));
  });

  it('needs a customer', () => {
    scenario(customer)
      .when((state) => updateCustomer(state, {}, HERE))
      .thenThrows(NotFoundError);
  });

  it('shows nothing of a person whose key is destroyed', () => {
    const erased = { ...created, data: { ...anna, personal: null } };
    expect(scenario(customer, erased, updated(null, { smsConsent: true })).state()).toMatchObject({
      firstName: 'Erased',
      email: null,
      smsConsent: true,
    });
  });
});

describe('erase', () => {
  const erased: CustomerEvent = { type: 'CustomerErased', data: { customerId: 3 } };
  const updated: CustomerEvent = {
    type: 'CustomerUpdated',
    data: { customerId: 3, smsConsent: true, personal: { lastName: 'Berg', metadata: { a: 1 } } },
  };

  it('records that it happened and nothing about the person', () => {
    scenario(customer, created).when(eraseCustomer).then(erased);
  });

  it('leaves nothing personal, and nothing that a search could find', () => {
    expect(scenario(customer, created, updated, { ...erased, at: LATER }).state()).toEqual({
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
      createdAt: AT,
      updatedAt: LATER,
      erasedAt: LATER,
      searchText: '',
      phoneDigits: null,
    });
  });

  it('leads to the same state whether or not the events before it can still be read', () => {
    const [sealed, sealedUpdate] = [created, updated].map((event) => ({
      ...event,
      data: { ...event.data, personal: null },
    })) as [CustomerEvent, CustomerEvent];
    expect(scenario(customer, sealed, sealedUpdate, erased).state()).toEqual(
      scenario(customer, created, updated, erased).state(),
    );
  });

  it('is done once', () => {
    scenario(customer, created, erased).when(eraseCustomer).then();
  });

  it('needs a customer', () => {
    scenario(customer).when(eraseCustomer).thenThrows(NotFoundError);
  });

  it('is the end of all changes', () => {
    scenario(customer, created, erased)
      .when((state) => updateCustomer(state, { firstName: 'Anna' }, HERE))
      .thenRejected({ fields: ['base'], code: 'customer_erased' });
  });
});

describe('values of one customer alone', () => {
  const state = scenario(customer, created).state();
  const reference = { source: 'pos', externalId: '1', metadata: {}, createdAt: AT, updatedAt: AT };
  const moved = (personal: object) =>
    findMovedValues(state, [{ type: 'CustomerUpdated', data: { customerId: 3, personal } }]);

  it('are taken when they are new and released when they are gone', () => {
    expect(findMovedValues(undefined, [created])).toEqual({
      added: [
        { kind: 'email', value: 'a@x.de' },
        { kind: 'phone', value: '+4915112345678' },
      ],
      released: [],
    });
    expect(moved({ email: 'b@x.de', phone: null, externalReferences: [reference] })).toEqual({
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

  it('stay where only their case changes', () => {
    expect(moved({ email: 'a@X.DE' })).toEqual({ added: [], released: [] });
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

  it('are upserted in turn, merged and sorted', () => {
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

  it('are in the order of source and id, whatever the order they came in', () => {
    const order = ['a 1', 'a 2', 'b 0', 'b 1', 'c 0', 'd 5'].map((name) => {
      const [source = '', externalId = ''] = name.split(' ');
      return { ...reference(source, externalId), createdAt: AT, updatedAt: AT };
    });
    for (const mixed of [
      [5, 4, 3, 2, 1, 0],
      [1, 0, 3, 2, 5, 4],
      [2, 5, 0, 3, 1, 4],
    ]) {
      expect(sortReferences(mixed.flatMap((i) => order[i] ?? []))).toEqual(order);
    }
  });
});

describe('metadata', () => {
  it('is bounded in keys and bytes', () => {
    const keys = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, 1]));
    expect(findMetadataError(keys(50))).toBeUndefined();
    expect(findMetadataError(keys(51))).toBe('must have at most 50 keys');
    expect(findMetadataError({ a: 'é'.repeat(8_180) })).toBeUndefined();
    expect(findMetadataError({ a: 'é'.repeat(8_200) })).toBe('must have at most 16 KiB');
  });

  it('is merged shallowly, and a null removes its key', () => {
    expect(mergeMetadata({ a: 1, b: { c: 1 } }, { a: null, b: { d: 2 } })).toEqual({ b: { d: 2 } });
  });
});

describe('contact', () => {
  it.each([
    ['+49 151 1234567', '+491511234567'],
    ['+44 (0)20 7946 0958', '+442079460958'],
    ['0151 / 123-45', '015112345'],
    ['+15550100', '+15550100'],
    ['call me', undefined],
    ['+', undefined],
    ['+12', undefined],
  ])('phone %s becomes %s', (given_, normal) => {
    expect(normalizePhone(given_, null)).toBe(normal);
  });

  it.each(['a@b.de', 'ü@münchen.example', "o'neil+tag@sub.example.com"])('accepts %s', (email) => {
    expect(isEmail(email)).toBe(true);
  });

  it.each(['a@b', '@b.de', 'a b@c.de', 'a@b..de', 'a@@b.de', 'x'.repeat(250) + '@b.de'])(
    'refuses %s',
    (email) => {
      expect(isEmail(email)).toBe(false);
    },
  );

  it.each([
    ['Grace@Müller.de', 'grace\ngrace@müller.de\ngrace@xn--mller-kva.de'],
    ['grace@xn--mller-kva.de', 'grace\ngrace@müller.de\ngrace@xn--mller-kva.de'],
    ['Grace@Straße.de', 'grace\ngrace@strasse.de\ngrace@xn--strae-oqa.de'],
    ['GRACE@Example.com', 'grace\ngrace@example.com'],
    ['grace@of.old..example', 'grace\ngrace@of.old..example'],
    [null, 'grace\n'],
  ])('e-mail address %s is searched by %j', (email, searchText) => {
    const personal = { ...anna.personal, firstName: 'Grace', lastName: null, email };
    expect(createSearchKeys(personal).searchText).toBe(searchText);
  });

  it('e-mail addresses are unique in every spelling of the domain', () => {
    const [one, other] = ['A@MÜLLER.de', 'a@xn--mller-kva.de'].map((email) =>
      listUniqueValues({ ...anna.personal, email, phone: null, externalReferences: [] }),
    );
    expect(one).toEqual([{ kind: 'email', value: 'a@xn--mller-kva.de' }]);
    expect(other).toEqual(one);
  });

  it.each([
    ['ÄÖÜ É', 'äöü é'],
    ['STRASSE', 'straße'],
    ['İstanbul', 'ISTANBUL'],
    ['ısparta', 'Isparta'],
    ['ΟΔΥΣΣΕΥΣ', 'οδυσσευς'],
    ['σ', 'ς'],
    ['RENE\u0301E', 'renée'],
    ['ｗｉｄｅ', 'WIDE'],
  ])('%s and %s are found alike', (one, other) => {
    expect(foldCase(one)).toBe(foldCase(other));
    expect(foldCase(foldCase(one))).toBe(foldCase(one));
  });
});

describe('search', () => {
  it('takes % and _ as they are', () => {
    expect(parseSearchTerm('50%_a\\', null).text).toBe(String.raw`%50\%\_a\\%`);
  });

  it('looks for digits only when nothing else is there', () => {
    expect(parseSearchTerm('+49 (151)', null).digits).toEqual(['%49151%']);
    expect(parseSearchTerm('49a', null).digits).toEqual([]);
    expect(parseSearchTerm('+-', null).digits).toEqual([]);
    expect(parseSearchTerm('0151', 'DE').digits).toEqual(['%0151%', '49151%']);
  });

  it('knows a uuid', () => {
    expect(parseSearchTerm('960fb88e-7dec-4e99-be20-c4a5dde82a89', null).uuid).not.toBeNull();
    expect(parseSearchTerm('960fb88e', null).uuid).toBeNull();
  });
});
