import { unreachable, type Aggregate } from '#kernel/aggregate.js';
import { RejectedError } from '#kernel/errors.js';
import type { AccountAttributes, AccountEvent } from './account.events.js';

/** A store: the tenant that everything belongs to. */
export type Account = { id: number; accountId: number } & AccountAttributes & {
    createdAt: string;
    updatedAt: string;
  };

export const account: Aggregate<Account, AccountEvent> = {
  name: 'account',
  foldVersion: 1,
  evolve(_state, event) {
    const at = event.meta.recordedAt;
    switch (event.type) {
      case 'AccountCreated':
        return { ...event.data, accountId: event.data.id, createdAt: at, updatedAt: at };
      default:
        return unreachable(event.type);
    }
  },
};

export function createAccount(id: number, attributes: AccountAttributes): AccountEvent[] {
  const name = attributes.name.trim();
  if (name === '' || [...name].length > 255) {
    throw new RejectedError({ name: ['must have 1 to 255 characters'] });
  }
  if (
    !Intl.supportedValuesOf('timeZone').includes(attributes.timeZone) &&
    attributes.timeZone !== 'UTC'
  ) {
    throw new RejectedError({ time_zone: ['is no known time zone'] });
  }
  return [{ type: 'AccountCreated', data: { id, ...attributes, name } }];
}
