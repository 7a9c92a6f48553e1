import type { DataSource } from 'typeorm';
import { ask } from './connection.js';
import { poolOf } from './data-source.js';

type Sequence =
  | 'accounts_id'
  | 'cards_id'
  | 'rewards_id'
  | 'customers_id'
  | 'customer_cards_id'
  | 'redemptions_id'
  | 'locations_id'
  | 'posters_id'
  | 'webhook_subscriptions_id';

/** Integer ids are taken before a decision and stand in its events; a refused command leaves a gap. */
export async function nextId(source: DataSource, sequence: Sequence): Promise<number> {
  const [row] = await ask<{ id: number }>(poolOf(source), {
    name: `next_${sequence}`,
    text: `select nextval('${sequence}') as id`,
  });
  if (!row) throw new Error(`${sequence} gave no id`);
  return row.id;
}
