import { z } from 'zod';
import type { Account } from './account.js';

export const accountAnswer = z
  .object({
    id: z.int(),
    name: z.string(),
    store_name: z.string().nullable(),
    display_store_name: z.string(),
    personal: z.boolean(),
    locations_count: z.int(),
    cards_count: z.int(),
    customers_count: z.int(),
    posters_count: z.int(),
    time_zone: z.string(),
    locale: z.string(),
    created_at: z.string(),
    updated_at: z.string(),
  })
  .meta({ id: 'Store' });

export type AccountJson = z.infer<typeof accountAnswer>;

export function accountJson(
  account: Account,
  counts: { cards: number; customers: number },
): AccountJson {
  return {
    id: account.id,
    name: account.name,
    store_name: account.storeName,
    display_store_name: account.storeName ?? account.name,
    personal: account.personal,
    locations_count: 0,
    cards_count: counts.cards,
    customers_count: counts.customers,
    posters_count: 0,
    time_zone: account.timeZone,
    locale: account.locale,
    created_at: account.createdAt,
    updated_at: account.updatedAt,
  };
}
