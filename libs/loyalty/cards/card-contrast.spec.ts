import { describe, expect, it } from '@jest/globals';
import { findCardWarnings, type CardColors } from './card-contrast.js';

const BROWN: CardColors = {
  cardColor: '#6B4226',
  textColor: '#FFFFFF',
  stampColor: '#6B4226',
  stampBackgroundColor: '#FFFFFF',
  stripType: 'color',
  stripColor: null,
  stripOpacity: 100,
};

describe('findCardWarnings', () => {
  it('finds nothing wrong with the colours of a new card', () => {
    expect(findCardWarnings(BROWN)).toEqual([]);
  });

  it.each(['#FFFFFF', '#000000', '#777777'])('warns of stamps that are all %s', (color) => {
    const stamps = { stampColor: color, stampBackgroundColor: color };
    expect(findCardWarnings({ ...BROWN, ...stamps, cardColor: color, textColor: color })).toEqual([
      'stamps_look_alike',
      'text_hard_to_read',
    ]);
  });

  it('warns of text that has less than three times the luminance of the card', () => {
    expect(findCardWarnings({ ...BROWN, textColor: '#8A6A50' })).toEqual(['text_hard_to_read']);
  });

  it('accepts stamps whose discs are seen though their icons are not', () => {
    expect(findCardWarnings({ ...BROWN, stampColor: '#F4F4F4' })).toEqual([]);
  });

  it('warns of stamps in the colour of the strip', () => {
    const strip = { stripColor: '#FFFFFF', stampColor: '#F4F4F4' };
    expect(findCardWarnings({ ...BROWN, ...strip })).toEqual(['stamps_look_alike']);
    // Under a transparent strip the card's own colour shows.
    expect(findCardWarnings({ ...BROWN, ...strip, stripOpacity: 0 })).toEqual([]);
  });

  it('warns of stamps in the colour that tints a drawing', () => {
    const strip = { stripColor: '#FFFFFF', stampColor: '#F4F4F4' };
    expect(findCardWarnings({ ...BROWN, ...strip, stripType: 'preset' })).toEqual([
      'stamps_look_alike',
    ]);
  });

  it('accepts usual stamps on a picture', () => {
    expect(findCardWarnings({ ...BROWN, stripType: 'image' })).toEqual([]);
  });
});
