import { describe, expect, it } from '@jest/globals';
import { AT, given } from '../../../test/support/given.js';
import { isEmail, normalPhone } from './contact.js';
import {
  createCustomer,
  customer,
  foldCase,
  mergeMetadata,
  refuseEnrolment,
  upsertReferences,
} from './customer.js';
import { searchTerm } from './customer.dto.js';
import type { CustomerEvent } from './customer.events.js';

const NOW = new Date('2026-03-01T12:00:00.000Z');

const anna = {
  customerId: 3,
  accountId: 1,
  source: 'api' as const,
  marketingConsent: true,
  smsConsent: false,
  sendCardLinks: false,
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

describe('create', () => {
  it('records the person', () => {
    given(customer)
      .when(() => createCustomer(anna))
      .then(created);
    given(customer)
      .when(() => createCustomer(anna))
      .thenState({
        id: 3,
        email: 'A@x.de',
        searchText: 'ännä öz\na@x.de',
        phoneDigits: '4915112345678',
        createdAt: AT,
      });
  });

  it('needs one way to reach the person', () => {
    const personal = { ...anna.personal, email: null, phone: null };
    given(customer)
      .when(() => createCustomer({ ...anna, personal }))
      .thenRejected({ fields: ['base'] });
    given(customer)
      .when(() => createCustomer({ ...anna, personal: { ...personal, phone: '123' } }))
      .thenState({ phone: '123', email: null });
  });

  it('shows nothing of a person whose key is destroyed', () => {
    const erased = { ...created, data: { ...anna, personal: null } };
    expect(given(customer, erased).state()).toMatchObject({
      firstName: 'Erased',
      email: null,
      phone: null,
      searchText: 'erased\n',
      phoneDigits: null,
      marketingConsent: true,
    });
  });
});

describe('enrolment', () => {
  it('is refused on a card that is archived or over', () => {
    const open = { archivedAt: null, expiresAt: null };
    expect(() => refuseEnrolment(open, NOW)).not.toThrow();
    expect(() => refuseEnrolment({ ...open, archivedAt: AT }, NOW)).toThrow('card_id is archived');
    expect(() => refuseEnrolment({ ...open, expiresAt: AT }, NOW)).toThrow('card_id has expired');
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
    const known = [{ ...reference('pos', '2', { a: 1 }), createdAt: AT, updatedAt: AT }];
    expect(
      upsertReferences(
        known,
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
});

describe('metadata', () => {
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
    expect(normalPhone(given_)).toBe(normal);
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

  it('ignores case beyond ASCII', () => {
    expect(foldCase('ÄÖÜ É')).toBe('äöü é');
  });
});

describe('search', () => {
  it('takes % and _ as they are', () => {
    expect(searchTerm('50%_a\\').text).toBe(String.raw`%50\%\_a\\%`);
  });

  it('looks for digits only when nothing else is there', () => {
    expect(searchTerm('+49 (151)').digits).toBe('%49151%');
    expect(searchTerm('49a').digits).toBeNull();
    expect(searchTerm('+-').digits).toBeNull();
  });

  it('knows a uuid', () => {
    expect(searchTerm('960fb88e-7dec-4e99-be20-c4a5dde82a89').uuid).not.toBeNull();
    expect(searchTerm('960fb88e').uuid).toBeNull();
  });
});
