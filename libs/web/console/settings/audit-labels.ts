import type { Changes } from '#platform/kernel/changes.js';
import { isRole } from '#identity/roles.js';
import type { Localization } from '#translations/translations.js';
import { capitalize } from '#web/pages/capitalize.js';

/** Returns the label of an audit entry's type; unknown types are spelled out. */
export function getAuditLabel(type: string, { t }: Localization): string {
  return findText(t.console.log.labels, type) ?? spellOut(type);
}

function findText(texts: Readonly<Record<string, string>>, name: string): string | undefined {
  return Object.hasOwn(texts, name) ? texts[name] : undefined;
}

function spellOut(name: string): string {
  return capitalize(name.replaceAll(/[._]+/g, ' ').trim(), 'en');
}

/** Actions of visitors who are not signed in. */
const BY_STRANGERS = new Set(['user.sign_in_failed', 'user.password_link_sent']);

/** Describes who did it. The operator's account name on the server means nothing to a shop. */
export function describeActor(
  what: string,
  { type, name }: { type: string; name: string | null },
  { t }: Localization,
): string {
  const { operator, operatorBy, somebody, notSignedIn, token } = t.console.log;
  if (type === 'admin_token') return name === null ? operator : operatorBy({ token: name });
  if (BY_STRANGERS.has(what)) return notSignedIn;
  if (type === 'system') return name === null ? 'Inkpad' : operator;
  return type === 'token' ? token({ name: name ?? '' }).trim() : (name ?? somebody);
}

/** Describes the details of an entry. @param day formats a day */
export function describeDetails(
  subject: object,
  day: (time: Date) => string,
  localization: Localization,
): string {
  const t = localization.t.console.log;
  const fields = subject as Record<string, unknown>;
  const text = (field: string) => (typeof fields[field] === 'string' ? fields[field] : '');
  const id = (field: string, describe: (values: { id: string }) => string) =>
    typeof fields[field] === 'number' ? describe({ id: String(fields[field]) }) : '';
  const times = typeof fields['times'] === 'number' ? fields['times'] : 0;
  const stores = Array.isArray(fields['account_ids']) ? fields['account_ids'].length : 0;
  const parts = [
    id('webhook_subscription_id', t.webhook),
    id('customer_id', t.customer),
    text('email'),
    getRoleLabel(fields['role'], localization),
    fields['read_only'] === true ? t.readOnly : '',
    stores > 0 ? t.onlyStores({ count: stores }) : '',
    findText(t.methods, text('method')) ?? '',
    times > 1 ? t.times({ count: times }) : '',
    text('expires_at') && t.until({ day: day(new Date(text('expires_at'))) }),
    text('target_url'),
  ];
  return parts.filter((part) => part !== '').join(', ');
}

/** Describes the changes, one line for each field. `enabled` is omitted, because the entry's label says it. */
export function describeChanges(subject: object, localization: Localization): string[] {
  const { fields, change } = localization.t.console.log;
  const { changes = {} } = subject as { changes?: Changes };
  return Object.entries(changes)
    .filter(([field]) => field !== 'enabled')
    .map(([field, { from, to }]) => {
      return change({
        field: findText(fields, field) ?? spellOut(field),
        from: describeValue(field, from, localization),
        to: describeValue(field, to, localization),
      });
    });
}

function describeValue(field: string, value: unknown, localization: Localization): string {
  const { usualLimit, nothing, allEvents, quoted } = localization.t.console.log;
  if (value === null || value === undefined) return field === 'per_minute' ? usualLimit : nothing;
  if (Array.isArray(value)) return value.includes('*') ? allEvents : value.join(', ');
  if (field === 'role') return getRoleLabel(value, localization);
  return typeof value === 'string' && field !== 'payload_format'
    ? quoted({ text: value })
    : String(value);
}

function getRoleLabel(role: unknown, { t }: Localization): string {
  return typeof role === 'string' && isRole(role) ? t.console.roles[role].text : '';
}
