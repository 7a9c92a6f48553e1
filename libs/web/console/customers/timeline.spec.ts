import { describe, expect, it } from '@jest/globals';
import { getTranslations } from '#translations/translations.js';
import { readModels } from '../../../../apps/read-models.js';
import {
  describeAuthor,
  describeBalanceAfter,
  describeEntry,
  findIcon,
  isUndoable,
  type TimelineEntry,
} from './timeline.js';

const { timeline: t } = getTranslations('en').t.customerPages;

const DETAILS = { silent: false, reverses: null, personal: null, source: 'api' };
const entry = (overrides: Partial<TimelineEntry>): TimelineEntry => ({
  name: 'stamp.earned',
  stamps: 2,
  source: 'api',
  data: DETAILS,
  subject: null,
  isImport: false,
  isReversal: false,
  isReversed: false,
  ...overrides,
});
const byMerge = { ...DETAILS, source: 'adjustment', silent: true };

it('every event has a label, and every label an event', () => {
  const tables = readModels.flatMap(({ events }) => Object.values(events));
  const names = new Set(tables.map(({ name }) => name));
  expect(Object.keys(t.kinds).toSorted()).toEqual([...names].toSorted());
});

describe('an entry of the timeline', () => {
  it.each([
    [entry({}), '+2 stamps'],
    [entry({ stamps: 1, source: 'welcome_bonus' }), '+1 welcome stamp'],
    [entry({ source: 'adjustment' }), 'Correction: +2 stamps'],
    [entry({ source: 'adjustment', isImport: true }), '+2 stamps imported'],
    [entry({ source: 'welcome_bonus', isImport: true }), '+2 welcome stamps'],
    [entry({ source: 'adjustment', data: byMerge }), '+2 stamps from a merge'],
    [entry({ name: 'stamp.removed', stamps: -3 }), 'Correction: −3 stamps'],
    [entry({ data: null }), '+2 stamps'],
    [entry({ name: 'reward.redeemed', stamps: -5, data: null }), 'Reward redeemed'],
    [entry({ name: 'customer.messaged', stamps: null, data: null }), 'Message to the customer'],
    [
      entry({ name: 'reward.unlocked', stamps: null, data: { name: 'Tea' } }),
      'Reward reached: Tea',
    ],
    [
      entry({ name: 'reward.redeemed', stamps: -5, data: { rewardName: 'Tea' } }),
      'Redeemed: Tea (5 stamps)',
    ],
    [
      entry({
        name: 'customer.updated',
        stamps: null,
        data: { customerId: 1, smsConsent: true, personal: { phone: '1', lastName: null } },
      }),
      'Customer changed: phone, last name, text message consent',
    ],
    [entry({ name: 'customer.updated', stamps: null, data: { customerId: 1 } }), 'Customer erased'],
    [
      entry({ name: 'customer.updated', stamps: null, data: { personal: null } }),
      'Customer changed',
    ],
    [
      entry({
        name: 'customer.messaged',
        stamps: null,
        data: { channel: 'email', personal: { title: 'Closed on Monday', text: 'Until Tuesday' } },
      }),
      'Message by e-mail: Closed on Monday',
    ],
    [
      entry({ name: 'customer.messaged', stamps: null, data: { channel: 'sms', personal: null } }),
      'Message to the customer',
    ],
    [
      entry({ name: 'card.created', stamps: null, data: { name: 'Coffee' } }),
      'Card designed: Coffee',
    ],
    [entry({ name: 'card.archived', stamps: null, data: {} }), 'Card archived'],
    [
      entry({ name: 'card.archived', stamps: null, data: {}, subject: 'Ice' }),
      'Card archived: Ice',
    ],
    [entry({ name: 'something.new', stamps: null, data: {} }), 'something.new'],
  ])('is described in the words of a shop: %#', (event, text) => {
    expect(describeEntry(event, t)).toBe(text);
  });

  it.each([
    [entry({}), 'stamp'],
    [entry({ source: 'adjustment' }), 'pencil'],
    [entry({ name: 'stamp.removed' }), 'pencil'],
    [entry({ name: 'stamp.removed', isReversal: true }), 'undo-2'],
    [entry({ name: 'reward.redeemed' }), 'gift'],
    [entry({ name: 'account.updated', source: null }), 'settings'],
  ])('has an icon of its kind: %#', (event, icon) => {
    expect(findIcon(event)).toBe(icon);
  });

  it('says how full the card was after it', () => {
    expect(describeBalanceAfter(5, 10, t)).toBe('then 5 of 10');
    expect(describeBalanceAfter(13, 10, t)).toBe('then 13 stamps');
  });

  it.each([
    [{ type: 'user', name: 'Mira' }, null, 'Mira'],
    [{ type: 'user', name: null }, null, 'A former user'],
    [{ type: 'token', name: 'till' }, 'Kim', 'Kim, till (API token)'],
    [{ type: 'system', name: null }, null, 'Inkpad'],
    [{ type: 'system', name: 'root' }, null, 'The operator'],
    [{ type: 'admin_token', name: 'billing' }, null, 'The operator'],
    [{ type: 'customer', name: 'Anna' }, null, 'The customer'],
  ])('names who did it: %j, %s', (actor, staffRef, text) => {
    expect(describeAuthor(actor, staffRef, t)).toBe(text);
  });

  it('can be undone once, and not what a merge or another undoing wrote', () => {
    expect(isUndoable(entry({}))).toBe(true);
    expect(isUndoable(entry({ name: 'reward.redeemed' }))).toBe(true);
    expect(isUndoable(entry({ isReversed: true }))).toBe(false);
    expect(isUndoable(entry({ isReversal: true }))).toBe(false);
    expect(isUndoable(entry({ data: byMerge }))).toBe(false);
    expect(isUndoable(entry({ name: 'customer.created' }))).toBe(false);
  });
});
