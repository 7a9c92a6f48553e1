import { describe, expect, it } from '@jest/globals';
import { getTranslations } from '#translations/translations.js';
import { getAuditLabel, describeChanges, describeDetails, describeActor } from './audit-labels.js';

const english = getTranslations('en');
const day = (time: Date) => time.toISOString().slice(0, 10);

describe('the description of an audit entry', () => {
  it.each([
    [{ role: { from: 'staff', to: 'owner' } }, ['Role: Staff → Owner']],
    [
      { target_url: { from: 'https://a.example/', to: 'https://b.example/?…' } },
      ['Address: “https://a.example/” → “https://b.example/?…”'],
    ],
    [{ description: { from: null, to: 'Till' } }, ['Description: nothing → “Till”']],
    [
      { events: { from: ['*'], to: ['stamp.earned', 'card.created'] } },
      ['Events: all events → stamp.earned, card.created'],
    ],
    [{ per_minute: { from: null, to: 600 } }, ['Requests per minute: the default → 600']],
    [{ payload_format: { from: 'envelope', to: 'flat' } }, ['Format: envelope → flat']],
    [
      { name: { from: 'A', to: 'B' }, email: { from: 'a@x.example', to: 'b@x.example' } },
      ['Name: “A” → “B”', 'E-mail address: “a@x.example” → “b@x.example”'],
    ],
    [{ enabled: { from: true, to: false } }, []],
    [{ sunset_date: { from: null, to: '2027-01-01' } }, ['End date: nothing → “2027-01-01”']],
    [{}, []],
  ])('lists the changes: %j', (changes, lines) => {
    expect(describeChanges({ changes }, english)).toEqual(lines);
  });

  it.each([
    [{ user_id: 1 }, ''],
    [{ webhook_subscription_id: 5, times: 1 }, 'webhook 5'],
    [{ webhook_subscription_id: 5, times: 100 }, 'webhook 5, 100 times within an hour'],
    [{ user_id: 1, method: 'password', times: 10 }, 'by password, 10 times within an hour'],
    [{ email: 'a@x.example', role: 'staff' }, 'a@x.example, Staff'],
    [{ token_id: 3, expires_at: '2027-03-04T00:00:00Z' }, 'until 2027-03-04'],
    [{ token_id: 3, expires_at: null }, ''],
    [{ token_id: 3, role: 'staff', account_ids: [7] }, 'Staff, for one store only'],
    [{ token_id: 3, account_ids: [7, 9], read_only: true }, 'read only, for 2 stores only'],
    [
      { webhook_subscription_id: 5, target_url: 'https://a.example/' },
      'webhook 5, https://a.example/',
    ],
    [{ customer_id: 12, times: 1 }, 'customer 12'],
  ])('describes the details: %j', (subject, details) => {
    expect(describeDetails(subject, day, english)).toBe(details);
    expect(describeChanges(subject, english)).toEqual([]);
  });

  it.each([
    ['user.signed_in', { type: 'user', name: 'Ada' }, 'Ada'],
    ['token.revoked', { type: 'token', name: 'till' }, 'API token till'],
    ['token.revoked', { type: 'user', name: null }, 'Someone'],
    ['token.limited', { type: 'system', name: 'root' }, 'The operator of this service'],
    ['token.limited', { type: 'admin_token', name: 'seed' }, 'The operator of this service (seed)'],
    ['webhook_subscription.disabled', { type: 'system', name: null }, 'Inkpad'],
    ['user.sign_in_failed', { type: 'system', name: null }, 'Not signed in'],
  ])('names the actor of %s by %j as %s', (type, actor, name) => {
    expect(describeActor(type, actor, english)).toBe(name);
  });

  it('spells out a type that has no label', () => {
    expect(getAuditLabel('card.painted_over', english)).toBe('Card painted over');
  });
});
