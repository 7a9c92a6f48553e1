import type { Channel } from '#kernel/aggregate.js';
import type { CustomerSource } from './customer.events.js';

const SOURCES: { [channel in Channel]?: CustomerSource } = {
  poster: 'poster',
  staff: 'app',
  owner: 'app',
  import: 'import',
};

/** Where a customer comes from, which receivers are told (contract section 10). */
export function findCustomerSource(channel: Channel): CustomerSource {
  return SOURCES[channel] ?? 'api';
}
