import { expect, it } from '@jest/globals';
import { readLocalClock } from '#platform/kernel/zoned-time.js';
import { CARDS, STORE } from './shop.js';
import { playYear, type Step } from './year.js';

const NOW = new Date('2026-11-26T13:00:00Z');
const year = playYear(NOW);

it('plays the same year every time', () => {
  expect(playYear(NOW).steps).toEqual(year.steps);
  expect(year.steps.length).toBeGreaterThan(6_000);
  expect(year.steps.length).toBeLessThan(15_000);
});

it('plays a year in order that ends now', () => {
  const times = year.steps.map(({ at }) => at);
  expect(times).toEqual(times.toSorted((one, other) => one - other));
  expect(times.at(-1)).toBeLessThan(NOW.getTime());
  expect(times[0]).toBeGreaterThan(year.startsAt);
});

it('lets guests come while the shop is open', () => {
  const hours = year.steps
    .filter(({ kind }) => kind === 'stamp')
    .map(({ at }) => readLocalClock(STORE.timeZone, at).hour);
  expect([Math.min(...hours), Math.max(...hours)]).toEqual([7, 17]);
});

it('spends no more stamps than a card has', () => {
  const balances = new Map<string, number>();
  const lastStamps = new Map<string, number>();
  for (const step of year.steps) {
    if (!('card' in step)) continue;
    const key = `${step.customer} ${step.card}`;
    const balance = balances.get(key) ?? CARDS[step.card].card.initial_stamps;
    balances.set(key, balance + findChange(step, lastStamps.get(key) ?? 0));
    if (step.kind === 'stamp') lastStamps.set(key, step.stamps);
    expect(balances.get(key)).toBeGreaterThanOrEqual(0);
  }
});

function findChange(step: Step, lastStamps: number): number {
  switch (step.kind) {
    case 'stamp':
    case 'adjust':
      return step.stamps;
    case 'reverse':
      return -lastStamps;
    case 'redeem':
      return -(CARDS[step.card].rewards[step.reward]?.stamps_required ?? 0);
    default:
      return 0;
  }
}
