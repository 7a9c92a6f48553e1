import { expect, it } from '@jest/globals';
import { getTranslations } from '#translations/translations.js';
import { listSteps } from './steps.js';

it('lists the steps that are left before those that are done', () => {
  const { overview } = getTranslations('en').t;
  const parts = { name: false, card: true, reward: false, poster: false };
  const steps = listSteps(parts, overview, true);
  expect(steps.map(({ title, page, below, isDone }) => [title, page + below, isDone])).toEqual([
    ['Name your shop', 'settings/name', false],
    ['Add a reward', 'cards', false],
    ['Make a poster', 'posters/new', false],
    ['Create your first card', 'cards/new', true],
  ]);
});

it.each([
  [true, 'Phones show the card when your shop is near.'],
  [false, 'With locations, you see your numbers for each of them.'],
])('says of a location what it is good for, with wallets: %s', (hasWallets, text) => {
  const { overview } = getTranslations('en').t;
  expect(listSteps({ location: false }, overview, hasWallets)).toMatchObject([{ text }]);
});
