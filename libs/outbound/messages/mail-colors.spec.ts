import { describe, expect, it } from '@jest/globals';
import { computeContrast } from '#platform/kernel/contrast.js';
import { createMailColors, invertLightness } from './mail-colors.js';

/** Every colour that a card may have, in steps of 17. */
const LEVELS = Array.from({ length: 16 }, (_, i) => (i * 17).toString(16).padStart(2, '0'));
const COLORS = LEVELS.flatMap((red) =>
  LEVELS.flatMap((green) => LEVELS.map((blue) => `#${red}${green}${blue}`.toUpperCase())),
);

/** Finds the pairs of text and ground of a card's e-mail that cannot be read. */
function findUnreadable(color: string): string[] {
  const { button, lightButton, darkButton, light, dark } = createMailColors(color);
  const pairs = [light, dark].flatMap((palette) => [
    [palette.text, palette.sheet],
    [palette.soft, palette.sheet],
    [palette.soft, palette.ground],
  ]);
  const invertible = [...pairs, [button.text, button.ground]];
  const plain = [lightButton, darkButton].map(({ text, ground }) => [text, ground]);
  return [...invertible, ...invertible.map((pair) => pair.map(invertLightness)), ...plain]
    .filter(([text = '', ground = '']) => computeContrast(text, ground) < 4.5)
    .map((pair) => `${color}: ${pair.join(' on ')}`);
}

describe('the colours of an e-mail', () => {
  it('can be read for every colour of a card, light and dark and inverted', () => {
    expect(COLORS.flatMap(findUnreadable)).toEqual([]);
  });

  it('show where the button ends, on both sheets', () => {
    const hidden = COLORS.filter((color) => {
      const { button, lightButton, darkButton, light, dark } = createMailColors(color);
      return [
        [button, light],
        [lightButton, light],
        [darkButton, dark],
      ].some(
        ([{ edge = '' } = {}, { sheet = '' } = {}]: Record<string, string>[]) =>
          computeContrast(edge, sheet) < 3,
      );
    });
    expect(hidden).toEqual([]);
  });

  it('keep the colour of the card where that can be read', () => {
    const brown = { ground: '#6B4226', text: '#FFFFFF', edge: '#6B4226' };
    expect(createMailColors('#6B4226')).toMatchObject({ button: brown, lightButton: brown });
    const yellow = createMailColors('#FFD400');
    expect(yellow.lightButton).toEqual({ ground: '#FFD400', text: '#000000', edge: '#1B1B1F' });
    expect(yellow.darkButton).toEqual({ ground: '#FFD400', text: '#000000', edge: '#FFD400' });
    expect(yellow.button.text).toBe('#FFFFFF');
  });

  it('invertLightness keeps the hue', () => {
    expect(invertLightness('#FFFFFF')).toBe('#000000');
    expect(invertLightness('#6B4226')).toBe('#D9B094');
    expect(invertLightness(invertLightness('#123456'))).toBe('#123456');
  });
});
