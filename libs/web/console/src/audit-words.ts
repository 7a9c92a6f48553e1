import { ROLE_WORDS } from './role-words.js';
import { isRole } from '#identity/roles.js';

const WORDS: Readonly<Record<string, string>> = {
  'user.created': 'User created',
  'user.updated': 'User changed',
  'user.removed': 'User removed',
  'user.invited': 'Invited',
  'user.signed_in': 'Signed in',
  'user.signed_out': 'Signed out',
  'user.sessions_ended': 'Other sessions ended',
  'user.password_changed': 'Password changed',
  'user.password_link_sent': 'Link for a new password sent',
  'user.address_link_sent': 'Link for a new e-mail address sent',
  'user.address_confirmed': 'E-mail address confirmed',
  'user.access_ended': 'Access from before the address was confirmed ended',
  'user.company_unlinked': 'Company sign-in unlinked',
  'user.second_factor_added': 'Codes turned on',
  'user.second_factor_removed': 'Codes turned off',
  'user.recovery_codes_renewed': 'New recovery codes made',
  'user.sign_in_paused': 'Sign-in paused after wrong passwords',
  'invitation.withdrawn': 'Invitation withdrawn',
  'member.added': 'Joined the store',
  'member.removed': 'Left the store',
  'member.role_changed': 'Role changed',
  'token.created': 'API token made',
  'token.revoked': 'API token revoked',
  'token.limited': 'Limit of API token changed',
  'webhook_subscription.created': 'Webhook added',
  'webhook_subscription.updated': 'Webhook changed',
  'webhook_subscription.enabled': 'Webhook turned on',
  'webhook_subscription.disabled': 'Webhook turned off',
  'webhook_subscription.deleted': 'Webhook deleted',
  'webhook_subscription.secret_rotated': 'Secret of webhook changed',
  'webhook_subscription.replayed': 'Webhook events sent again',
  'webhook_delivery.redelivered': 'Webhook event sent again',
};

/** What was done; a type without words of its own is spelled out. */
export function auditWords(type: string): string {
  const words = Object.hasOwn(WORDS, type) ? WORDS[type] : undefined;
  if (words !== undefined) return words;
  const spelled = type.replaceAll(/[._]+/g, ' ').trim();
  return spelled.charAt(0).toUpperCase() + spelled.slice(1);
}

export function whoDid({ type, name }: { type: string; name: string | null }): string {
  if (type === 'system') return name ?? 'Inkpad';
  return type === 'token' ? `API token ${name ?? ''}`.trim() : (name ?? 'Somebody');
}

/** What an entry says besides whom it is about. @param day writes one */
export function detailsOf(subject: object, day: (time: Date) => string): string {
  const said = subject as Record<string, unknown>;
  const role = roleText(said['role']);
  const before = roleText(said['previous_role']);
  const parts = [
    typeof said['email'] === 'string' ? said['email'] : '',
    before && role ? `${before} → ${role}` : role,
    typeof said['expires_at'] === 'string' ? `until ${day(new Date(said['expires_at']))}` : '',
    typeof said['per_minute'] === 'number' ? `${said['per_minute']} requests a minute` : '',
    typeof said['target_url'] === 'string' ? said['target_url'] : '',
  ];
  return parts.filter((part) => part !== '').join(', ');
}

function roleText(role: unknown): string {
  return typeof role === 'string' && isRole(role) ? ROLE_WORDS[role].text : '';
}
