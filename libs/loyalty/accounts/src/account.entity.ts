import type { RowTable } from '#event-store/read-models/read-models.js';
import { account, type Account } from './account.js';
import type { AccountEvent } from './account.events.js';

export const accountRows: RowTable<Account, AccountEvent> = {
  aggregate: account,
  table: 'accounts',
  beginsHistory: true,
};
