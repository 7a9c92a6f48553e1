import { describe, expect, it } from '@jest/globals';
import type { RecordedEvent } from '#kernel/aggregate.js';
import { carryOverAgain, carryOverToNewCard, countCarriedOver } from './carry-over.js';
import { issue, type CustomerCard, type Template } from './customer-card.js';
import type { CustomerCardEvent } from './customer-card.events.js';

const NOW = new Date('2026-03-01T12:00:00Z');
const template: Template = {
  cardId: 3,
  version: 7,
  name: 'Coffee',
  stampsRequired: 10,
  initialStamps: 2,
  expiresAt: null,
  archivedAt: null,
  maxStampsPerRequest: null,
  maxStampsPerDay: null,
  minSecondsBetweenStamps: null,
  timeZone: 'UTC',
  rewards: [{ id: 1, name: 'Cake', description: null, stampsRequired: 5, active: true }],
} as Template;
const ids = { id: 1, accountId: 1, customerId: 2, uuid: 'u', code: 'ABCD2345' };
const issued = issue(ids, template);

const summarize = (events: CustomerCardEvent[]) =>
  events.map(({ type, data }) => [type, 'stamps' in data ? data.stamps : null]);

describe('carryOverToNewCard', () => {
  it('adds the stamps to the welcome stamps, and unlocks what they reach together', () => {
    const carryOver = { customerId: 2, carryOver: { stamps: 3, reason: 'Import 1' } };
    const events = carryOverToNewCard(issued, template, carryOver, NOW);
    expect(summarize(events)).toEqual([
      ['CustomerCardIssued', null],
      ['StampsEarned', 2],
      ['StampsEarned', 3],
      ['RewardUnlocked', null],
    ]);
  });

  it('adds nothing for none', () => {
    const carryOver = { customerId: 2, carryOver: { stamps: 0, reason: 'Import 1' } };
    expect(carryOverToNewCard(issued, template, carryOver, NOW)).toBe(issued);
  });
});

describe('carryOverAgain', () => {
  const card = { customerId: 2, stampsCount: 4, unlocked: [] } as unknown as CustomerCard;
  const again = (stamps: number, carriedOver: number) =>
    carryOverAgain(card, template, { customerId: 2, stamps, reason: 'Import 2', carriedOver });

  it('changes nothing for the same number', () => {
    expect(again(3, 3)).toEqual([]);
  });

  it('adds or takes off the difference', () => {
    expect(summarize(again(5, 3))).toEqual([
      ['StampsEarned', 2],
      ['RewardUnlocked', null],
    ]);
    expect(summarize(again(1, 3))).toEqual([['StampsRemoved', 2]]);
  });

  it('refuses to take off more than there is', () => {
    expect(() => again(0, 5)).toThrow('takes 5 stamps and the card holds 4');
  });
});

describe('countCarriedOver', () => {
  const record = (event: CustomerCardEvent, channel: string) =>
    ({ ...event, id: 'x', meta: { channel } }) as unknown as RecordedEvent<CustomerCardEvent>;
  const stamps = (type: 'StampsEarned' | 'StampsRemoved', count: number, channel: string) =>
    record(
      {
        type,
        data: { stamps: count, source: 'adjustment', silent: false, reverses: null, personal: {} },
      } as unknown as CustomerCardEvent,
      channel,
    );

  it('counts only what came by imports, less what they took back', () => {
    const events = [
      ...issued.map((event) => record(event, 'import')),
      stamps('StampsEarned', 5, 'import'),
      stamps('StampsEarned', 9, 'api'),
      stamps('StampsRemoved', 2, 'import'),
      stamps('StampsRemoved', 1, 'api'),
    ];
    expect(countCarriedOver(events)).toEqual({ stamps: 3, absorbedIds: [] });
  });

  it('names the cards that were merged into it and not out of it again', () => {
    const absorbed = (fromId: number) =>
      record({ type: 'CustomerCardAbsorbed', data: { fromId } } as CustomerCardEvent, 'api');
    const events = [
      absorbed(8),
      absorbed(9),
      record({ type: 'CustomerCardUnmerged', data: { restoredId: 9 } } as CustomerCardEvent, 'api'),
    ];
    expect(countCarriedOver(events)).toEqual({ stamps: 0, absorbedIds: [8] });
  });
});
