import { describe, expect, it } from '@jest/globals';
import { Narrator, type Step } from './explanation.js';

const STEP: Step = {
  name: 'stamp.earned',
  at: new Date('2026-03-01T23:05:00Z'),
  stamps: 2,
  source: 'api',
  isImport: false,
  isMerge: false,
  reward: null,
  location: null,
  person: null,
  receipt: null,
  note: null,
  reverses: null,
  reversed: null,
};
const LOCALES = ['en', 'de', 'fr', 'es'];

/** Describes a step. Replaces narrow spaces, which differ between versions of ICU, by plain ones. */
const describeStep = (locale: string, step: Partial<Step>, timeZone = 'UTC') =>
  new Narrator({ locale, timeZone }).describe({ ...STEP, ...step }).replaceAll(/\s/g, ' ');

describe('Narrator', () => {
  it('says what happened, where, by whom and why', () => {
    const step = {
      location: 'Old Town',
      person: 'Kim',
      receipt: 'R-1',
      note: 'a cake',
      reversed: new Date('2026-03-02T08:00:00Z'),
    };
    expect(describeStep('en-GB', step)).toBe(
      '1 Mar 2026, 23:05: 2 stamps added, at Old Town, by Kim, receipt R-1, undone on 2 Mar 2026, 08:00 (a cake)',
    );
  });

  it('uses the language and the time zone of the store', () => {
    const reward = { name: 'reward.redeemed', stamps: -10, reward: 'Kuchen' };
    expect(describeStep('de-AT', reward, 'Europe/Vienna')).toMatch(
      /^02[.]03[.]2026.* 00:05: Prämie „Kuchen“ für 10 Stempel eingelöst$/,
    );
    expect(describeStep('fr', { stamps: 1 })).toMatch(/: 1 tampon ajouté$/);
    expect(describeStep('es', { name: 'stamp.removed', stamps: -3 })).toMatch(
      /: corrección: 3 sellos retirados$/,
    );
  });

  it('falls back to English for an unknown language, dates included', () => {
    expect(describeStep('it', {})).toBe(describeStep('en', {}));
  });

  it.each(LOCALES)('has a text for every step in %s', (locale) => {
    const steps: Partial<Step>[] = [
      { name: 'customer_card.created', stamps: null },
      { source: 'welcome_bonus' },
      { source: 'adjustment' },
      { source: 'adjustment', isImport: true },
      { source: 'adjustment', isMerge: true },
      { name: 'stamp.removed', stamps: -1, isMerge: true },
      { name: 'stamp.removed', stamps: -1 },
      { name: 'reward.unlocked', stamps: null, reward: 'R' },
      { name: 'reward.redeemed', stamps: -1, reward: 'R' },
      {},
    ];
    const texts = steps.map((step) => describeStep(locale, step));
    expect(new Set(texts).size).toBe(steps.length);
    expect(texts.join()).not.toMatch(/undefined|null|[.](earned|removed|unlocked|redeemed)/);
    const narrator = new Narrator({ locale, timeZone: 'UTC' });
    expect(narrator.describeEarlier(1)).not.toBe(narrator.describeEarlier(2).replace('2', '1'));
  });
});
