import type { Command } from 'commander';
import { PhoneConflicts } from '#loyalty/customers/phone-conflicts.service.js';
import { parsePositive, runList } from './command.js';
import { addExamples } from '../command-line.js';

type Conflict = { account_id: number; customer_id: number; held_by: number; phone: string };

/** Lists customers that share a phone number. */
export function addPhoneCommands(program: Command): void {
  addExamples(
    program
      .command('phones:conflicts')
      .description(
        'lists customers whose phone number belongs to another customer once it is read in the store’s country; merge the two, or change one',
      )
      .option('--store <id>', 'only of this store, as store:list shows it', parsePositive),
    'phones:conflicts --store 1',
  ).action(({ store }: { store?: number }) => {
    runList('conflicts', async (app) => {
      const rows: Conflict[] = [];
      for await (const conflict of app.get(PhoneConflicts).find(store ?? null)) {
        const { accountId, customerId, heldBy, maskedPhone } = conflict;
        rows.push({
          account_id: accountId,
          customer_id: customerId,
          held_by: heldBy,
          phone: maskedPhone,
        });
      }
      return rows;
    });
  });
}
