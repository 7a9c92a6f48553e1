import { describe, expect, it } from '@jest/globals';
import { choosePlate, type RgbaPixels } from './logo-plate.js';

const BROWN = '#3E2723';
const SIDE = 8;

/** A disc of one colour on transparent ground, or with `corner` on that. */
function createLogo(
  [red, green, blue]: [number, number, number],
  corner: [number, number, number, number] = [0, 0, 0, 0],
): RgbaPixels {
  const data = Uint8Array.from(
    Array.from({ length: SIDE * SIDE }, (_, i) => {
      const [x, y] = [i % SIDE, Math.floor(i / SIDE)];
      const isInside = Math.hypot(x - 3.5, y - 3.5) < 3;
      return isInside ? [red, green, blue, 255] : corner;
    }).flat(),
  );
  return { data, width: SIDE, height: SIDE };
}

describe('what a logo is drawn on', () => {
  it('is the ground of its place where it can be seen there', () => {
    expect(choosePlate(createLogo([255, 255, 255]), BROWN)).toEqual({
      ground: BROWN,
      isNeeded: false,
    });
  });

  it('is white for a dark logo on a dark ground, and black for a light one on a light ground', () => {
    expect(choosePlate(createLogo([62, 39, 35]), BROWN)).toEqual({
      ground: '#FFFFFF',
      isNeeded: true,
    });
    expect(choosePlate(createLogo([250, 240, 200]), '#FFFFFF')).toEqual({
      ground: '#1B1B1B',
      isNeeded: true,
    });
  });

  it('is the colour of its own edge for a logo without transparent parts', () => {
    const logo = createLogo([200, 30, 30], [240, 240, 230, 255]);
    expect(choosePlate(logo, BROWN)).toEqual({ ground: '#F0F0E6', isNeeded: false });
  });

  it('is the ground for a picture of which nothing can be seen', () => {
    const data = new Uint8Array(SIDE * SIDE * 4);
    expect(choosePlate({ data, width: SIDE, height: SIDE }, BROWN).ground).toBe(BROWN);
  });
});
