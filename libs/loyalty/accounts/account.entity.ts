import type { ReadModel } from '#platform/event-store/read-models/read-models.js';
import { account, type Account } from './account.js';
import type { AccountEvent } from './account.events.js';

export const accountReadModel: ReadModel<Account, AccountEvent> = {
  aggregate: account,
  table: 'accounts',
  beginsHistory: true,
};
