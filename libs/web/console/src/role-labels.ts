import { ROLES, type Role } from '#identity/roles.js';

export const ROLE_LABELS: Record<Role, { text: string; hint: string }> = {
  owner: { text: 'Owner', hint: 'Full access, including users, all API tokens and webhooks.' },
  manager: { text: 'Manager', hint: 'Cards, rewards, posters, customers, settings, history.' },
  staff: { text: 'Staff', hint: 'Finds and adds customers, stamps and redeems.' },
};

/** The options of a select. */
export const ROLE_OPTIONS = ROLES.map((value) => ({ value, text: ROLE_LABELS[value].text }));
