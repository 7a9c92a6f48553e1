import { describe, expect, it } from '@jest/globals';
import { getTranslations } from '#translations/translations.js';
import { createDraft } from './card-draft.js';
import { createFronts, cutText, listPoints } from './card-fronts.js';
import { createDesignForm } from './design-form.dto.js';

const english = getTranslations('en');
const form = createDesignForm('coffee', english.t.cardPages.templates);
const draft = createDraft(
  {
    ...form,
    rewards: [
      ...form.rewards,
      {
        id: '',
        name: 'Espresso',
        stamps: '5',
        description: '',
        isRemoved: false,
        isBeyondMeant: false,
      },
    ],
  },
  null,
);

describe('createFronts', () => {
  it('shows a card empty, half full and full, with the stamps to the next reward', () => {
    const { states } = createFronts({
      draft,
      storeName: 'Corner Café',
      store: english,
      page: english,
      toStripUrl: (filled, size) => `${filled}@${size}`,
    });
    expect(states.map(({ count, missing, strip, hero }) => [count, missing, strip, hero])).toEqual([
      ['0/10', '5', '0@2x', '0@hero'],
      ['5/10', '5', '5@2x', '5@hero'],
      ['10/10', '0', '10@2x', '10@hero'],
    ]);
  });
});

describe('listPoints', () => {
  it('names the rewards at each stamp, with what they take', () => {
    const points = listPoints(draft, english);
    expect(points).toHaveLength(10);
    expect(points[4]).toMatchObject({
      row: 1,
      label: 'Stamp 5: Espresso',
      title: 'Espresso',
      cost: 'uses 5 stamps',
    });
    expect(points[0]).toMatchObject({ row: null, label: null });
  });
});

describe('cutText', () => {
  it('cuts what is too long, between characters as people see them', () => {
    expect(cutText('Corner Café', 200, 16)).toBe('Corner Café');
    expect(cutText('A very long name of a shop', 60, 16)).toMatch(/^A very?…$/);
    expect(cutText('👩‍👩‍👧👩‍👩‍👧👩‍👩‍👧', 40, 16)).toBe('👩‍👩‍👧…');
    expect(cutText('', 10, 16)).toBe('');
  });
});
