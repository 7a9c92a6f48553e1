import { describe, expect, it } from '@jest/globals';
import { NotFoundError } from '#kernel/errors.js';
import { AT, scenario } from '../../../../test/support/fixtures/aggregate-scenario.js';
import { customer, eraseCustomer, type Customer } from './customer.js';
import { customerReadModel } from './customer.entity.js';
import type { CustomerEvent, PersonalFields } from './customer.events.js';
import { mergeCustomers, unmergeCustomers } from './merging.js';
import { resealCustomer, withPerson } from './resealing.js';

const CARDS = { moved: [4], added: [] };

const created = (customerId: number, fields: Partial<PersonalFields>): CustomerEvent => ({
  type: 'CustomerCreated',
  data: {
    customerId,
    accountId: 1,
    source: 'api',
    marketingConsent: true,
    smsConsent: false,
    sendCardLinks: false,
    agreed: null,
    personal: {
      firstName: `Person ${customerId}`,
      lastName: null,
      email: null,
      phone: null,
      birthday: null,
      metadata: {},
      externalReferences: [],
      ...fields,
    },
  },
});
const reference = (externalId: string) => ({
  source: 'till',
  externalId,
  metadata: {},
  createdAt: AT,
  updatedAt: AT,
});
const ONE = { email: 'one@x.example', metadata: { a: 1 }, externalReferences: [reference('A')] };
const TWO = {
  email: 'two@x.example',
  phone: '+4915112345678',
  lastName: 'Tal',
  metadata: { b: 2 },
  externalReferences: [reference('B')],
};

/** As they are read when the key that sealed them is gone. */
const unread = (events: CustomerEvent[]): CustomerEvent[] =>
  events.map((event) => ({ ...event, data: { ...event.data, personal: null } }) as CustomerEvent);

const state = (events: CustomerEvent[]): Customer => scenario(customer, ...events).state();

/** The events of both after a merge, and after it was undone. */
function histories() {
  const [one, two] = [[created(1, ONE)], [created(2, TWO)]];
  const merge = mergeCustomers(state(one), state(two), CARDS);
  const merged = { one: [...one, ...merge.survivor], two: [...two, ...merge.other] };
  const undone = unmergeCustomers(state(merged.one), state(merged.two), { country: null });
  return {
    merged,
    unmerged: {
      one: [...merged.one, ...undone.survivor],
      two: [...merged.two, ...undone.other],
    },
  };
}

describe('reseal', () => {
  it('contains all personal data, so that no earlier event has to be read', () => {
    const { merged, unmerged } = histories();
    for (const events of [merged.one, merged.two, unmerged.one, unmerged.two]) {
      const again = resealCustomer(state(events));
      const { holds: _, ...read } = state([...events, ...again]);
      const { holds: __, ...blind } = state([...unread(events), ...again]);
      expect(blind).toEqual(read);
      const { holds: ___, ...before } = state(events);
      expect(read).toEqual(before);
    }
  });

  it('keeps what undoing a merge needs', () => {
    const { merged } = histories();
    const [one, two] = [merged.one, merged.two].map((events) =>
      state([...unread(events), ...resealCustomer(state(events))]),
    );
    if (!one || !two) throw new Error('two are two');
    const asEver = unmergeCustomers(state(merged.one), state(merged.two), { country: null });
    expect(unmergeCustomers(one, two, { country: null })).toEqual(asEver);
  });

  it('leaves only values of those who are merged still', () => {
    const { merged, unmerged } = histories();
    expect(state(unmerged.one).holds).toEqual([2]);
    expect(state(unmerged.two).formerlyIn).toEqual([1]);
    const after = (events: CustomerEvent[]) =>
      state([...events, ...resealCustomer(state(events))]).holds;
    expect(after(unmerged.one)).toEqual([]);
    expect(after(merged.one)).toEqual([2]);
    // Also where it cannot be read any more itself.
    expect(state([...unmerged.one, ...unread(resealCustomer(state(unmerged.one)))]).holds).toEqual(
      [],
    );
  });

  it('has a merged customer found by no search', () => {
    const { merged } = histories();
    const again = resealCustomer(state(merged.two));
    expect(state([...merged.two, ...again])).toMatchObject({ searchText: '', phoneDigits: null });
  });

  it('claims all that is held, whatever was claimed before', () => {
    const [again] = resealCustomer(state([created(1, ONE)]));
    if (!again) throw new Error('there is something to say');
    const fact = { ...again, id: 'again', meta: {} as never };
    expect(customerReadModel.getClaimChanges?.(fact, undefined)).toEqual({
      releasesAll: true,
      claims: [
        { kind: 'email', value: 'one@x.example' },
        { kind: 'external_references', value: '["till","A"]' },
      ],
    });
    const [lost] = unread([again]);
    expect(lost && customerReadModel.getClaimChanges?.({ ...fact, ...lost }, undefined)).toEqual({
      releasesAll: true,
      claims: [],
    });
  });

  it('changes nothing else where the person cannot be read any more', () => {
    const { merged } = histories();
    const [again] = unread(resealCustomer(state(merged.one)));
    const before = state(unread(merged.one));
    expect(state([...unread(merged.one), ...(again ? [again] : [])])).toEqual(before);
    const alone = [created(1, ONE)];
    const [lost] = unread(resealCustomer(state(alone)));
    expect(state([...unread(alone), ...(lost ? [lost] : [])])).toEqual({
      ...state(unread(alone)),
      holds: [],
    });
  });

  it('writes nothing for an erased customer, and refuses one that does not exist', () => {
    const events = [created(1, ONE)];
    expect(resealCustomer(state([...events, ...eraseCustomer(state(events))]))).toEqual([]);
    expect(() => resealCustomer(undefined)).toThrow(NotFoundError);
  });
});

it('shows of the past the person of now, and all else as it was', () => {
  const past = { ...state([created(1, TWO)]), updatedAt: 'then', marketingConsent: false };
  const now = state([created(1, ONE)]);
  const { searchText, phoneDigits } = past;
  expect(withPerson(past, now)).toEqual({
    ...now,
    searchText,
    phoneDigits,
    updatedAt: 'then',
    marketingConsent: false,
  });
});
