import { expect, it } from '@jest/globals';
import { getTranslations } from '#translations/translations.js';
import { describeState } from './message-views.js';

it.each([
  [{ sent: 3, failed: 0, people: 4 }, 'good'],
  [{ sent: 3, failed: 1, people: 4 }, 'warn'],
  [{ sent: 0, failed: 0, people: 4 }, 'warn'],
])('warns when nobody got an announcement, or a message of it failed: %o', (counts, mood) => {
  expect(describeState('sent', false, counts, getTranslations('en')).mood).toBe(mood);
});
