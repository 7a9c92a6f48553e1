import { describe, expect, it } from '@jest/globals';
import { fitText, type Room } from './fitting.js';

/** Every character is half as wide as it is high. */
const half = (text: string) => [...text].length / 2;

const room: Room = { width: 100, height: 40, maxSize: 20, minSize: 2, maxLines: 3, leading: 1 };

const widest = ({ size, lines }: { size: number; lines: string[] }) =>
  Math.max(...lines.map((line) => half(line) * size));

describe('fitText', () => {
  it('uses the largest size for a short text', () => {
    expect(fitText('Coffee', room, half)).toEqual({ size: 20, lines: ['Coffee'] });
  });

  it('prefers more lines to a smaller size, and balances their lengths', () => {
    const fit = fitText('one two six four', room, half);
    expect(fit).toEqual({ size: 20, lines: ['one two', 'six four'] });
  });

  it('reduces the size before it splits a word', () => {
    const fit = fitText('a'.repeat(30), room, half);
    expect(fit.lines).toEqual(['a'.repeat(30)]);
    expect(widest(fit)).toBeLessThanOrEqual(100);
  });

  it('splits a word that is too long in the smallest size', () => {
    const fit = fitText('a'.repeat(150), room, half);
    expect(fit.size).toBe(2);
    expect(fit.lines.join('')).toBe('a'.repeat(150));
    expect(widest(fit)).toBeLessThanOrEqual(100);
  });

  it('never splits a grapheme of several characters', () => {
    const family = '👨‍👩‍👧‍👦';
    const fit = fitText(family.repeat(60), room, half);
    expect(fit.lines.every((line) => line.replaceAll(family, '').replace('…', '') === '')).toBe(
      true,
    );
  });

  it('cuts a text that fits in no size, and marks it with an ellipsis', () => {
    const fit = fitText('word '.repeat(500), room, half);
    expect(fit.lines).toHaveLength(3);
    expect(fit.lines.at(-1)).toMatch(/ wor…$/);
    expect(widest(fit)).toBeLessThanOrEqual(100);
  });

  it.each([1, 10, 40, 80, 160, 255, 1000])('stays within the box with %i characters', (length) => {
    for (const text of ['W'.repeat(length), 'ab '.repeat(length), `x ${'y'.repeat(length)}`]) {
      const fit = fitText(text, room, half);
      expect(widest(fit)).toBeLessThanOrEqual(100);
      expect(fit.lines.length * fit.size).toBeLessThanOrEqual(40);
      expect(fit.lines.length).toBeLessThanOrEqual(3);
    }
  });
});
