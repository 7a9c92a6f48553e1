import type { Changes } from '#kernel/changes.js';
import { ROLE_LABELS } from './role-labels.js';
import { isRole } from '#identity/roles.js';

const AUDIT_LABELS: Readonly<Record<string, string>> = {
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
  'user.access_ended': 'Earlier access ended when the address was confirmed',
  'user.company_unlinked': 'Company sign-in unlinked',
  'user.sign_in_failed': 'Sign-in failed',
  'user.reauthentication_failed': 'Wrong password on a confirmation',
  'user.second_factor_started': 'Setup of two-step verification started',
  'user.second_factor_added': 'Two-step verification turned on',
  'user.second_factor_removed': 'Two-step verification turned off',
  'user.recovery_codes_renewed': 'New recovery codes created',
  'user.sign_in_paused': 'Sign-in paused after wrong passwords',
  'invitation.withdrawn': 'Invitation withdrawn',
  'member.added': 'Joined the store',
  'member.removed': 'Left the store',
  'member.role_changed': 'Role changed',
  'token.created': 'API token created',
  'token.revoked': 'API token revoked',
  'token.limited': 'Limit of API token changed',
  'import.created': 'Customers file uploaded',
  'import.started': 'Import started',
  'import.discarded': 'Import discarded',
  'import.undone': 'Import undone',
  'webhook_subscription.created': 'Webhook added',
  'webhook_subscription.updated': 'Webhook changed',
  'webhook_subscription.enabled': 'Webhook turned on',
  'webhook_subscription.disabled': 'Webhook turned off',
  'webhook_subscription.deleted': 'Webhook deleted',
  'webhook_subscription.secret_read': 'Secret of webhook read',
  'webhook_subscription.secret_rotated': 'Secret of webhook changed',
  'webhook_subscription.tested': 'Webhook tested',
  'webhook_subscription.replayed': 'Webhook events sent again',
  'webhook_delivery.redelivered': 'Webhook event sent again',
  'customer.exported': 'All data of a customer exported',
  'store.exported': 'Data of the store exported',
  'store.quotas_changed': 'Quotas changed',
  'card_message.sent_again': 'Card link sent again',
};

/** Returns the label of an audit entry's type; unknown types are spelled out. */
export function getAuditLabel(type: string): string {
  const words = Object.hasOwn(AUDIT_LABELS, type) ? AUDIT_LABELS[type] : undefined;
  if (words !== undefined) return words;
  const spelled = type.replaceAll(/[._]+/g, ' ').trim();
  return spelled.charAt(0).toUpperCase() + spelled.slice(1);
}

/** Actions of visitors who are not signed in. */
const BY_STRANGERS = new Set(['user.sign_in_failed', 'user.password_link_sent']);

export function describeActor(
  what: string,
  { type, name }: { type: string; name: string | null },
): string {
  if (type === 'admin_token') return `The operator (admin token ${name ?? ''})`;
  if (BY_STRANGERS.has(what)) return 'Somebody';
  // The command line records the operator's account name on the server, which means nothing to a shop.
  if (type === 'system') return name === null ? 'Inkpad' : 'The operator';
  return type === 'token' ? `API token ${name ?? ''}`.trim() : (name ?? 'Somebody');
}

/** Describes the details of an entry. @param day formats a day */
export function describeDetails(subject: object, day: (time: Date) => string): string {
  const fields = subject as Record<string, unknown>;
  const text = (field: string) => (typeof fields[field] === 'string' ? fields[field] : '');
  const number = (field: string, words: (value: number) => string) =>
    typeof fields[field] === 'number' ? words(fields[field]) : '';
  const parts = [
    number('webhook_subscription_id', (id) => `webhook ${id}`),
    number('customer_id', (id) => `customer ${id}`),
    text('email'),
    getRoleLabel(fields['role']),
    fields['read_only'] === true ? 'read only' : '',
    Array.isArray(fields['account_ids']) ? describeStores(fields['account_ids'].length) : '',
    METHOD_LABELS[text('method')] ?? '',
    number('times', (times) => (times > 1 ? `${times} times within an hour` : '')),
    text('expires_at') && `until ${day(new Date(text('expires_at')))}`,
    text('target_url'),
  ];
  return parts.filter((part) => part !== '').join(', ');
}

const METHOD_LABELS: Readonly<Record<string, string>> = {
  password: 'by password',
  code: 'by code',
  app: 'by password and code',
  recovery: 'by password and recovery code',
  company: 'by the company',
  invitation: 'by invitation',
};

const FIELD_LABELS: Readonly<Record<string, string>> = {
  name: 'Name',
  email: 'E-mail address',
  role: 'Role',
  per_minute: 'Requests a minute',
  target_url: 'URL',
  events: 'Events',
  description: 'Description',
  payload_format: 'Format',
};

/** Describes the changes, one line for each field. `enabled` is omitted, because the entry's label says it. */
export function describeChanges(subject: object): string[] {
  const { changes = {} } = subject as { changes?: Changes };
  return Object.entries(changes)
    .filter(([field]) => field !== 'enabled')
    .map(([field, { from, to }]) => {
      const name = Object.hasOwn(FIELD_LABELS, field) ? FIELD_LABELS[field] : getAuditLabel(field);
      return `${name} from ${describeValue(field, from)} to ${describeValue(field, to)}`;
    });
}

function describeValue(field: string, value: unknown): string {
  if (value === null || value === undefined) {
    return field === 'per_minute' ? 'the usual limit' : 'nothing';
  }
  if (Array.isArray(value)) return value.includes('*') ? 'all events' : value.join(', ');
  if (field === 'role') return getRoleLabel(value);
  return typeof value === 'string' && field !== 'payload_format' ? `“${value}”` : String(value);
}

function describeStores(count: number): string {
  return count === 1 ? 'for one store only' : `for ${count} stores only`;
}

function getRoleLabel(role: unknown): string {
  return typeof role === 'string' && isRole(role) ? ROLE_LABELS[role].text : '';
}
