import { describe, expect, it } from '@jest/globals';
import { NotFoundError } from '#platform/kernel/errors.js';
import { AT, scenario } from '../../../test/support/fixtures/aggregate-scenario.js';
import { customer, eraseCustomer, type Customer } from './customer.js';
import { customerReadModel } from './customer.entity.js';
import type { CustomerEvent, PersonalFields } from './customer.events.js';
import { mergeCustomers, unmergeCustomers } from './merging.js';
import { resealCustomer, withPerson } from './resealing.js';

const CARDS = { moved: [4], added: [] };

const customerCreated = (customerId: number, fields: Partial<PersonalFields>): CustomerEvent => ({
  type: 'CustomerCreated',
  data: {
    customerId,
    accountId: 1,
    source: 'api',
    marketingConsent: true,
    smsConsent: false,
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

/** Returns events as they are read once the key that sealed them is destroyed. */
const withoutPersonal = (events: CustomerEvent[]): CustomerEvent[] =>
  events.map((event) => ({ ...event, data: { ...event.data, personal: null } }) as CustomerEvent);

const state = (events: CustomerEvent[]): Customer => scenario(customer, ...events).state();

/** Creates the events of both customers after a merge, and after it was undone. */
function createHistories() {
  const [one, two] = [[customerCreated(1, ONE)], [customerCreated(2, TWO)]];
  const merge = mergeCustomers(state(one), state(two), CARDS);
  const merged = { one: [...one, ...merge.survivor], two: [...two, ...merge.other] };
  const unmerge = unmergeCustomers(state(merged.one), state(merged.two), { country: null });
  return {
    merged,
    unmerged: {
      one: [...merged.one, ...unmerge.survivor],
      two: [...merged.two, ...unmerge.other],
    },
  };
}

describe('resealCustomer', () => {
  it('records all personal data, so that earlier events need not be decrypted', () => {
    const { merged, unmerged } = createHistories();
    for (const events of [merged.one, merged.two, unmerged.one, unmerged.two]) {
      const resealEvents = resealCustomer(state(events));
      const { holds: _, ...stateAfter } = state([...events, ...resealEvents]);
      const { holds: __, ...stateWithoutPersonal } = state([
        ...withoutPersonal(events),
        ...resealEvents,
      ]);
      expect(stateWithoutPersonal).toEqual(stateAfter);
      const { holds: ___, ...stateBefore } = state(events);
      expect(stateAfter).toEqual(stateBefore);
    }
  });

  it('records what unmergeCustomers needs', () => {
    const { merged } = createHistories();
    const [one, two] = [merged.one, merged.two].map((events) =>
      state([...withoutPersonal(events), ...resealCustomer(state(events))]),
    );
    if (!one || !two) throw new Error('there are two customers');
    const expected = unmergeCustomers(state(merged.one), state(merged.two), { country: null });
    expect(unmergeCustomers(one, two, { country: null })).toEqual(expected);
  });

  it('removes from holds the customers whose merge was undone', () => {
    const { merged, unmerged } = createHistories();
    expect(state(unmerged.one).holds).toEqual([2]);
    expect(state(unmerged.two).formerlyIn).toEqual([1]);
    const getHoldsAfter = (events: CustomerEvent[]) =>
      state([...events, ...resealCustomer(state(events))]).holds;
    expect(getHoldsAfter(unmerged.one)).toEqual([]);
    expect(getHoldsAfter(merged.one)).toEqual([2]);
    // Even when the event itself cannot be decrypted.
    expect(
      state([...unmerged.one, ...withoutPersonal(resealCustomer(state(unmerged.one)))]).holds,
    ).toEqual([]);
  });

  it('leaves a merged customer without search keys', () => {
    const { merged } = createHistories();
    const resealEvents = resealCustomer(state(merged.two));
    expect(state([...merged.two, ...resealEvents])).toMatchObject({
      searchText: '',
      phoneDigits: null,
    });
  });

  it('replaces all earlier claims by those on the current values', () => {
    const [resealEvent] = resealCustomer(state([customerCreated(1, ONE)]));
    if (!resealEvent) throw new Error('there is an event');
    const recordedEvent = { ...resealEvent, id: 'again', meta: {} as never };
    expect(customerReadModel.getClaimChanges?.(recordedEvent, undefined)).toEqual({
      releasesAll: true,
      claims: [
        { kind: 'email', value: 'one@x.example' },
        { kind: 'external_references', value: '["till","A"]' },
      ],
    });
    const [unreadableEvent] = withoutPersonal([resealEvent]);
    expect(
      unreadableEvent &&
        customerReadModel.getClaimChanges?.({ ...recordedEvent, ...unreadableEvent }, undefined),
    ).toEqual({
      releasesAll: true,
      claims: [],
    });
  });

  it('changes no personal data in the state when it cannot be decrypted', () => {
    const { merged } = createHistories();
    const [resealEvent] = withoutPersonal(resealCustomer(state(merged.one)));
    const stateBefore = state(withoutPersonal(merged.one));
    expect(state([...withoutPersonal(merged.one), ...(resealEvent ? [resealEvent] : [])])).toEqual(
      stateBefore,
    );
    const alone = [customerCreated(1, ONE)];
    const [unreadableEvent] = withoutPersonal(resealCustomer(state(alone)));
    expect(
      state([...withoutPersonal(alone), ...(unreadableEvent ? [unreadableEvent] : [])]),
    ).toEqual({
      ...state(withoutPersonal(alone)),
      holds: [],
    });
  });

  it('records nothing for an erased customer, and throws NotFoundError without one', () => {
    const events = [customerCreated(1, ONE)];
    expect(resealCustomer(state([...events, ...eraseCustomer(state(events))]))).toEqual([]);
    expect(() => resealCustomer(undefined)).toThrow(NotFoundError);
  });
});

it('withPerson replaces the personal data of an earlier state, and nothing else', () => {
  const past = { ...state([customerCreated(1, TWO)]), updatedAt: 'then', marketingConsent: false };
  const now = state([customerCreated(1, ONE)]);
  const { searchText, phoneDigits } = past;
  expect(withPerson(past, now)).toEqual({
    ...now,
    searchText,
    phoneDigits,
    updatedAt: 'then',
    marketingConsent: false,
  });
});
