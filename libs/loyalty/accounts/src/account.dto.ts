import { z } from 'zod';
import { clearable, text, timestamp } from '#http/fields.js';
import { localeOf, timeZoneOf, type Account } from './account.js';
import type { AccountSettings } from './account.events.js';

const timeZone = known(timeZoneOf, 'must be an IANA time zone such as Europe/Berlin').meta({
  type: 'string',
  description: 'IANA name; days and birthdays are counted in it',
  example: 'Europe/Berlin',
});
const locale = known(localeOf, 'must be a BCP 47 language tag such as de or pt-BR').meta({
  type: 'string',
  description: 'BCP 47 language tag',
  example: 'pt-BR',
});

export const updateAccountDto = z
  .object({
    name: text({ example: 'Corner Café' }).optional(),
    store_name: clearable(text()).describe('The public name; null: the name'),
    time_zone: timeZone.optional(),
    locale: locale.optional(),
  })
  .meta({
    id: 'StoreChanges',
    example: { store_name: 'Corner Café', time_zone: 'Europe/Berlin' },
  });

export const accountAnswer = z
  .object({
    id: z.int(),
    name: z.string().meta({ example: 'corner-cafe' }),
    store_name: z.string().nullable().meta({ example: 'Corner Café' }),
    display_store_name: z
      .string()
      .meta({ example: 'Corner Café' })
      .describe('store_name, or name where there is none'),
    personal: z.boolean().meta({ example: false }),
    locations_count: z.int(),
    cards_count: z.int(),
    customers_count: z.int(),
    posters_count: z.int(),
    time_zone: z.string().meta({ example: 'Europe/Berlin' }),
    locale: z.string().meta({ example: 'en' }),
    created_at: timestamp,
    updated_at: timestamp,
  })
  .meta({ id: 'Store' });

export type AccountJson = z.infer<typeof accountAnswer>;

/** What belongs to a store and is not deleted. */
export type AccountCounts = {
  cards: number;
  customers: number;
  locations: number;
  posters: number;
};

export function accountJson(account: Account, counts: AccountCounts): AccountJson {
  return {
    id: account.id,
    name: account.name,
    store_name: account.storeName,
    display_store_name: account.storeName ?? account.name,
    personal: account.personal,
    locations_count: counts.locations,
    cards_count: counts.cards,
    customers_count: counts.customers,
    posters_count: counts.posters,
    time_zone: account.timeZone,
    locale: account.locale,
    created_at: account.createdAt,
    updated_at: account.updatedAt,
  };
}

/** Only what was named in the request. */
export function accountSettings(input: z.infer<typeof updateAccountDto>): Partial<AccountSettings> {
  const { name, store_name, time_zone, locale: tag } = input;
  return {
    ...(name !== undefined && { name }),
    ...(store_name !== undefined && { storeName: store_name }),
    ...(time_zone !== undefined && { timeZone: time_zone }),
    ...(tag !== undefined && { locale: tag }),
  };
}

function known(spelling: (given: string) => string | undefined, fault: string) {
  return text().transform((given, context) => {
    const usual = spelling(given);
    if (usual !== undefined) return usual;
    context.addIssue({ code: 'custom', message: fault });
    return z.NEVER;
  });
}
