import type { Channel } from '#platform/kernel/aggregate.js';
import type { CustomerSource } from './customer.events.js';

const SOURCES: Partial<Record<Channel, CustomerSource>> = {
  poster: 'poster',
  staff: 'app',
  owner: 'app',
  import: 'import',
};

/** Finds the source of a customer, which `customer.created` names (JOIN-08). */
export function findCustomerSource(channel: Channel): CustomerSource {
  return SOURCES[channel] ?? 'api';
}
