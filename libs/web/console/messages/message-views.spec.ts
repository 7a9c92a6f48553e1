import { expect, it } from '@jest/globals';
import { getTranslations } from '#translations/translations.js';
import { describeState } from './message-views.js';

it.each([
  [{ queued: 0, sent: 3, failed: 0, people: 4 }, 'good'],
  [{ queued: 0, sent: 3, failed: 1, people: 4 }, 'warn'],
  [{ queued: 0, sent: 0, failed: 0, people: 4 }, 'warn'],
  [{ queued: 1, sent: 3, failed: 0, people: 4 }, 'warn'],
])(
  'warns when nobody got an announcement, or a message of it failed or waits: %o',
  (counts, mood) => {
    expect(describeState('sent', false, counts, getTranslations('en')).mood).toBe(mood);
  },
);
