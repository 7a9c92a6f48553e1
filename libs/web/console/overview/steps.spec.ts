import { expect, it } from '@jest/globals';
import { getTranslations } from '#translations/translations.js';
import { listSteps } from './steps.js';

const NOTHING = {
  name: false,
  card: false,
  reward: false,
  poster: false,
  customer: false,
  stamp: false,
  logo: false,
  location: false,
  privacy: false,
  team: false,
};

it('leads to the first stamp, and lists apart what is useful later', () => {
  const { overview } = getTranslations('en').t;
  const { needed, useful } = listSteps({ ...NOTHING, card: true, team: true }, overview, true);
  expect(needed.map(({ title, page, below, isDone }) => [title, page + below, isDone])).toEqual([
    ['Name your shop', 'settings/name', false],
    ['Create your first card', 'cards/new', true],
    ['Add a reward', 'cards', false],
    ['Make a poster', 'posters/new', false],
    ['Welcome your first customer', 'customers/new', false],
    ['Give the first stamp', 'counter', false],
  ]);
  expect(useful.map(({ title, isDone }) => [title, isDone])).toEqual([
    ['Add your logo', false],
    ['Add your first location', false],
    ['Say how you handle data', false],
    ['Invite your team', true],
  ]);
});

it.each([
  [true, 'Phones show the card when your shop is near.'],
  [false, 'With locations, you see your numbers for each of them.'],
])('says of a location what it is good for, with wallets: %s', (hasWallets, text) => {
  const { overview } = getTranslations('en').t;
  expect(listSteps(NOTHING, overview, hasWallets).useful[1]).toMatchObject({ text });
});
