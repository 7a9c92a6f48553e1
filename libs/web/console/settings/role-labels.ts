import { ROLES, type Role } from '#identity/roles.js';
import type { Translations } from '#translations/translations.js';

/** Lists the roles as the options of a select. */
export function listRoleOptions(t: Translations): { value: Role; text: string }[] {
  return ROLES.map((value) => ({ value, text: t.console.roles[value].text }));
}
