import { describe, expect, it } from '@jest/globals';
import { markLeftToRight, markLines, mirrorText, splitByDirection } from './text-direction.js';

const split = (line: string) => splitByDirection(line).map(({ text }) => text);

describe('splitByDirection', () => {
  it('leaves a line alone that is read from the left', () => {
    expect(splitByDirection('10 cafés (1 €)')).toEqual([
      { text: '10 cafés (1 €)', isRightToLeft: false },
    ]);
  });

  it('keeps words that are read from the right in one part', () => {
    expect(splitByDirection('بطاقة ولاء القهوة')).toEqual([
      { text: 'بطاقة ولاء القهوة', isRightToLeft: true },
    ]);
  });

  it('orders parts from the right when the first letter is read from the right', () => {
    expect(split('קפה Inkpad חינם')).toEqual([' חינם', 'Inkpad', 'קפה ']);
    expect(split('קפה 10 חינם')).toEqual([' חינם', '10', 'קפה ']);
    expect(split('قهوة ١٢')).toEqual(['١٢', 'قهوة ']);
  });

  it('orders parts from the left when the first letter is read from the left', () => {
    expect(split('Café مقهى الميناء Hamburg')).toEqual(['Café ', 'مقهى الميناء', ' Hamburg']);
    // A number belongs to the word before it.
    expect(split('Café מקום 10 Hamburg')).toEqual(['Café ', '10', 'מקום ', ' Hamburg']);
  });

  it('lets a mark decide the direction of a line, and does not draw it', () => {
    expect(split(markLeftToRight('קפה for 10 stamps'))).toEqual(['קפה', ' for 10 stamps']);
    expect(split(markLeftToRight('Free coffee'))).toEqual(['Free coffee']);
  });

  it.each([
    ['קפה 10% הנחה', [' הנחה', '10%', 'קפה ']],
    ['קפה ב-1,000 ₪', [' ₪', '1,000', 'קפה ב-']],
    ['مقهى 10:30', ['10:30', 'مقهى ']],
    ['Café קפה, 1,000 x', ['Café ', '1,000', 'קפה, ', ' x']],
  ])('keeps the signs of a number with it in %s', (line, parts) => {
    expect(split(line)).toEqual(parts);
  });

  it('leaves brackets to the font where words are read from the right', () => {
    expect(splitByDirection('קפה (חינם)')).toEqual([{ text: 'קפה (חינם)', isRightToLeft: true }]);
  });
});

describe('markLines', () => {
  it('gives each line the direction of the whole text', () => {
    const lines = markLines('קפה חינם Inkpad קפה', ['קפה חינם', 'Inkpad קפה']);
    expect(lines.map((line) => split(line))).toEqual([['קפה חינם'], [' קפה', 'Inkpad']]);
  });

  it('leaves lines alone that are all read from the left', () => {
    expect(markLines('Free coffee', ['Free', 'coffee'])).toEqual(['Free', 'coffee']);
  });
});

describe('mirrorText', () => {
  it('turns a text around with its brackets', () => {
    expect(mirrorText('(1é)')).toBe('(é1)');
  });
});
