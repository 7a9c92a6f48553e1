import { describe, expect, it } from '@jest/globals';
import { listHiddenFields } from './pass-row.js';

const field = (key: string, value: string, label: string | null = null) => ({ key, label, value });

describe('listHiddenFields', () => {
  it.each([
    ['nothing', [], null, []],
    ['short fields', [field('aux_1', 'latte', 'Wifi'), field('aux_2', 'Mo–Sa', 'Open')], 'Hi', []],
    ['a long field', [field('aux_1', 'x'.repeat(60))], null, ['aux_1']],
    ['a field of two lines', [field('aux_1', 'a\nb')], null, ['aux_1']],
    ['a long text beside short fields', [field('aux_1', 'latte')], 'x'.repeat(60), ['header']],
    ['a text in letters that are wide', [], '咖啡'.repeat(12), ['header']],
    [
      'a middling text beside two middling fields',
      [field('aux_1', 'Open every day'), field('aux_2', 'Free cake today')],
      'Thank you so much',
      ['header'],
    ],
  ])('names what has no room of %s', (_, auxiliaryFields, headerText, keys) => {
    expect(listHiddenFields({ auxiliaryFields, headerText })).toEqual(keys);
  });
});
