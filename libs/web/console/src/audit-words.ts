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
  'user.sign_in_paused': 'Sign-in paused after wrong passwords',
  'invitation.withdrawn': 'Invitation withdrawn',
  'member.added': 'Joined the store',
  'member.removed': 'Left the store',
  'member.role_changed': 'Role changed',
  'token.created': 'API token made',
  'token.revoked': 'API token revoked',
  'token.limited': 'Limit of API token changed',
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

/** What an entry says besides whom it is about. */
export function detailsOf(subject: object): string {
  const said = subject as Record<string, unknown>;
  const role = roleText(said['role']);
  const before = roleText(said['previous_role']);
  const parts = [
    typeof said['email'] === 'string' ? said['email'] : '',
    before && role ? `${before} → ${role}` : role,
    typeof said['expires_at'] === 'string' ? `until ${said['expires_at'].slice(0, 10)}` : '',
    typeof said['per_minute'] === 'number' ? `${said['per_minute']} requests a minute` : '',
    typeof said['target_url'] === 'string' ? said['target_url'] : '',
  ];
  return parts.filter((part) => part !== '').join(', ');
}

function roleText(role: unknown): string {
  return typeof role === 'string' && isRole(role) ? ROLE_WORDS[role].text : '';
}
