import type { EntityManager } from 'typeorm';
import { query } from '#platform/database/connection.js';
import { getTranslations, type Localization } from '#translations/translations.js';

/**
 * Finds the language of the e-mails to a user: that of the store that they joined first. Of the browser nothing is
 * known, or it is that of somebody else, who has only entered the address.
 */
export async function findUserTranslations(
  manager: EntityManager,
  userId: number,
): Promise<Localization> {
  const [store] = await query<{ locale: string }>(manager, {
    text: `select a.locale from memberships m join accounts a on a.id = m.account_id
     where m.user_id = $1 order by m.created_at, a.id limit 1`,
    values: [userId],
  });
  return getTranslations(store?.locale ?? 'en');
}
