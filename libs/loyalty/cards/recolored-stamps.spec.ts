import { describe, expect, it } from '@jest/globals';
import { areStampsRecolored, type LayeredCard } from './stamp-colors.js';

const BROWN = {
  cardColor: '#6B4226',
  stampColor: '#6B4226',
  stampBackgroundColor: '#FFFFFF',
  stripType: 'color' as const,
  stripColor: null,
  stripPreset: null,
  stripPicture: null,
  stripOpacity: 100,
};

describe('areStampsRecolored', () => {
  it.each<[string, Partial<typeof BROWN | LayeredCard>, boolean]>([
    ['the colours of a new card', {}, false],
    ['an icon that is not seen on its disc', { stampColor: '#F4F4F4' } as object, true],
    ['a disc that hardly stands out', { stampBackgroundColor: '#9A7A5E' } as object, true],
    [
      'discs in the colour of the card',
      { stampBackgroundColor: '#6B4226', stampColor: '#FFFFFF' } as object,
      true,
    ],
    ['white discs on a white strip', { stripColor: '#FFFFFF' }, true],
    ['white discs on a dark drawing', { stripType: 'preset', stripPreset: 'coffee' }, false],
    ['white discs on a light drawing', { stripType: 'preset', stripPreset: 'bakery' }, true],
    ['white discs on a picture', { stripType: 'image', stripPicture: 'a'.repeat(64) }, false],
    ['a strip of opacity 0', { stripColor: '#FFFFFF', stripOpacity: 0 } as object, false],
  ])('tells for %s', (_, changes, isRecolored) => {
    expect(areStampsRecolored({ ...BROWN, ...changes })).toBe(isRecolored);
  });
});
