import { describe, expect, it } from '@jest/globals';
import { findCardWarnings } from '#loyalty/cards/card-contrast.js';
import { findColorFix } from './color-fixes.js';

const COLORS = ['#FFFFFF', '#000000', '#808080', '#6B4226', '#FFE000', '#1166CC', '#E0E0E0'];
const LAYERS = [
  { stripType: 'color', stripColor: null, stripOpacity: 100 },
  { stripType: 'color', stripColor: '#777777', stripOpacity: 60 },
  { stripType: 'preset', stripColor: null, stripOpacity: 100 },
] as const;

describe('the colours that end a warning', () => {
  it('leave no warning, whatever the card looks like', () => {
    for (const layer of LAYERS) {
      for (const cardColor of COLORS) {
        for (const color of COLORS) {
          const colors = {
            ...layer,
            cardColor,
            textColor: color,
            stampColor: color,
            stampBackgroundColor: cardColor,
          };
          const { text_color: textColor = '' } = findColorFix('text_hard_to_read', colors);
          const { stamp_color: stampColor = '', stamp_background_color: ground = '' } =
            findColorFix('stamps_look_alike', colors);
          const fixed = { ...colors, textColor, stampColor, stampBackgroundColor: ground };
          expect([colors, findCardWarnings(fixed)]).toEqual([colors, []]);
        }
      }
    }
  });

  it('keep a colour behind the stamp that another colour of the stamp makes visible', () => {
    const fix = findColorFix('stamps_look_alike', {
      ...LAYERS[0],
      cardColor: '#6B4226',
      textColor: '#FFFFFF',
      stampColor: '#6B4226',
      stampBackgroundColor: '#6B4226',
    });
    expect(fix).toEqual({ stamp_background_color: '#6B4226', stamp_color: '#FFFFFF' });
  });
});
