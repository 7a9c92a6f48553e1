import { describe, expect, it } from '@jest/globals';
import { setImportedStamps, addImportedStamps } from './imported-stamps.js';
import { customerCard, issue, type CustomerCard, type Template } from './customer-card.js';
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

describe('addImportedStamps', () => {
  it('adds the stamps to the welcome stamps, and unlocks what they reach together', () => {
    const imported = { customerId: 2, stampImport: { stamps: 3, reason: 'Import 1' } };
    const events = addImportedStamps(issued, template, imported, NOW);
    expect(summarize(events)).toEqual([
      ['CustomerCardIssued', null],
      ['StampsEarned', 2],
      ['StampsEarned', 3],
      ['RewardUnlocked', null],
    ]);
  });

  it('adds nothing for none', () => {
    const imported = { customerId: 2, stampImport: { stamps: 0, reason: 'Import 1' } };
    expect(addImportedStamps(issued, template, imported, NOW)).toBe(issued);
  });
});

describe('setImportedStamps', () => {
  const again = (stamps: number, importedStamps: number, absorbedStamps = 0) =>
    setImportedStamps(
      {
        customerId: 2,
        stampsCount: 4,
        unlocked: [],
        importedStamps,
      } as unknown as CustomerCard,
      template,
      { customerId: 2, stamps, reason: 'Import 2', absorbedStamps },
    );

  it('changes nothing for the same number', () => {
    expect(again(3, 3)).toEqual([]);
    expect(again(3, 1, 2)).toEqual([]);
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

describe('the state of a card', () => {
  it('counts only the stamps that came by imports, less what they took back', () => {
    const at = NOW.toISOString();
    const evolve = (state: CustomerCard | undefined, event: CustomerCardEvent, channel: string) =>
      customerCard.evolve(state, {
        ...event,
        id: 'x',
        meta: {
          accountId: 1,
          actor: { type: 'token', id: 1 },
          channel,
          requestId: 'x',
          occurredAt: at,
          recordedAt: at,
        },
      });
    const change = (type: 'StampsEarned' | 'StampsRemoved', stamps: number) =>
      ({
        type,
        data: { stamps, source: 'adjustment', silent: false, reverses: null, personal: {} },
      }) as unknown as CustomerCardEvent;
    let card: CustomerCard | undefined;
    for (const event of issued) card = evolve(card, event, 'import');
    expect(card?.importedStamps).toBe(0);
    for (const [event, channel] of [
      [change('StampsEarned', 5), 'import'],
      [change('StampsEarned', 9), 'api'],
      [change('StampsRemoved', 2), 'import'],
      [change('StampsRemoved', 1), 'api'],
    ] as const) {
      card = evolve(card, event, channel);
    }
    expect([card?.importedStamps, card?.stampsCount]).toEqual([3, 13]);
  });
});
