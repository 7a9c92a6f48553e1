import { parseStreamName } from '#platform/kernel/aggregate.js';
import type { StoredEvent } from '#platform/event-store/port/event-store.js';

/** The passes that a batch of events may have changed. */
export type PassScope = {
  /** By customer card, in the order of the log. */
  customerCards: Map<number, StoredEvent[]>;
  customers: Set<number>;
  /** Templates and rewards change the passes of a card, stores and their locations those of a whole store. */
  cards: Set<number>;
  rewards: Set<number>;
  accounts: Set<number>;
  locations: Set<number>;
};

/** Finds the scope of a batch by the names of its streams. Other streams change no pass. */
export function findScope(events: StoredEvent[]): PassScope {
  const scope: PassScope = {
    customerCards: new Map(),
    customers: new Set(),
    cards: new Set(),
    rewards: new Set(),
    accounts: new Set(),
    locations: new Set(),
  };
  for (const event of events) {
    const { aggregate, id } = parseStreamName(event.stream);
    switch (aggregate) {
      case 'customer_card': {
        const others = scope.customerCards.get(id);
        if (others) others.push(event);
        else scope.customerCards.set(id, [event]);
        break;
      }
      case 'customer':
        scope.customers.add(id);
        break;
      case 'card':
        scope.cards.add(id);
        break;
      case 'reward':
        scope.rewards.add(id);
        break;
      case 'account':
        scope.accounts.add(id);
        break;
      case 'location':
        scope.locations.add(id);
        scope.accounts.add(event.meta.accountId);
        break;
      default:
    }
  }
  return scope;
}

export function isEmptyScope(scope: PassScope): boolean {
  return Object.values(scope).every(({ size }) => size === 0);
}
