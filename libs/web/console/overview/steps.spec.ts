import { expect, it } from '@jest/globals';
import { getTranslations } from '#translations/translations.js';
import { listSteps } from './steps.js';

it('lists the steps that are left before those that are done', () => {
  const { overview } = getTranslations('en').t;
  const steps = listSteps({ card: true, reward: false, poster: false }, overview);
  expect(steps.map(({ title, page, isDone }) => [title, page, isDone])).toEqual([
    ['Add a reward', 'cards', false],
    ['Print a poster', 'posters', false],
    ['Create your first card', 'cards', true],
  ]);
});
