import { describe, expect, it } from '@jest/globals';
import { getAuditLabel, describeChanges, describeDetails, describeActor } from './audit-labels.js';

const day = (time: Date) => time.toISOString().slice(0, 10);

describe('the description of an audit entry', () => {
  it.each([
    [{ role: { from: 'staff', to: 'owner' } }, ['Role from Staff to Owner']],
    [
      { target_url: { from: 'https://a.example/', to: 'https://b.example/?…' } },
      ['URL from “https://a.example/” to “https://b.example/?…”'],
    ],
    [{ description: { from: null, to: 'Till' } }, ['Description from nothing to “Till”']],
    [
      { events: { from: ['*'], to: ['stamp.earned', 'card.created'] } },
      ['Events from all events to stamp.earned, card.created'],
    ],
    [{ per_minute: { from: null, to: 600 } }, ['Requests a minute from the usual limit to 600']],
    [{ payload_format: { from: 'envelope', to: 'flat' } }, ['Format from envelope to flat']],
    [
      { name: { from: 'A', to: 'B' }, email: { from: 'a@x.example', to: 'b@x.example' } },
      ['Name from “A” to “B”', 'E-mail address from “a@x.example” to “b@x.example”'],
    ],
    [{ enabled: { from: true, to: false } }, []],
    [
      { sunset_date: { from: null, to: '2027-01-01' } },
      ['Sunset date from nothing to “2027-01-01”'],
    ],
    [{}, []],
  ])('lists the changes: %j', (changes, lines) => {
    expect(describeChanges({ changes })).toEqual(lines);
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
    expect(describeDetails(subject, day)).toBe(details);
    expect(describeChanges(subject)).toEqual([]);
  });

  it.each([
    ['user.signed_in', { type: 'user', name: 'Ada' }, 'Ada'],
    ['token.revoked', { type: 'token', name: 'till' }, 'API token till'],
    ['token.revoked', { type: 'user', name: null }, 'Somebody'],
    ['token.limited', { type: 'system', name: 'root' }, 'The operator'],
    ['webhook_subscription.disabled', { type: 'system', name: null }, 'Inkpad'],
    ['user.sign_in_failed', { type: 'system', name: null }, 'Somebody'],
  ])('names the actor of %s by %j as %s', (type, actor, name) => {
    expect(describeActor(type, actor)).toBe(name);
  });

  it('spells out a type that has no label', () => {
    expect(getAuditLabel('card.painted_over')).toBe('Card painted over');
  });
});
