import { expect, it } from '@jest/globals';
import { getTranslations } from '#translations/translations.js';
import { listSteps } from './steps.js';

it('lists the steps that are left before those that are done', () => {
  const { overview } = getTranslations('en').t;
  const steps = listSteps({ name: false, card: true, reward: false, poster: false }, overview);
  expect(steps.map(({ title, page, below, isDone }) => [title, page + below, isDone])).toEqual([
    ['Name your shop', 'settings/name', false],
    ['Add a reward', 'cards', false],
    ['Print a poster', 'posters/new', false],
    ['Create your first card', 'cards/new', true],
  ]);
});
