import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import {
  hashDesign,
  countFilledStamps,
  toLogoUrl,
  createStripDesign,
  toStripUrl,
  type StripAppearance,
} from './strip-design.js';

const CARD: StripAppearance = {
  stampsRequired: 10,
  stampIcon: 'coffee',
  stampColor: '#6B4226',
  stampBackgroundColor: '#FFFFFF',
  cardColor: '#123456',
  stripType: 'color',
  stripColor: null,
  stripOpacity: 100,
  stripPreset: null,
  stripPicture: null,
};
const PICTURE = 'c'.repeat(64);

const designWith = (changes: Partial<StripAppearance>) =>
  createStripDesign({ ...CARD, ...changes }, []);
const reward = (stampsRequired: number, active = true) => ({ stampsRequired, active });

describe('the layer of a design', () => {
  it.each([
    ['a colour', { stripColor: '#ABCDEF' }, { color: '#ABCDEF' }],
    ["the card's colour without one", {}, { color: '#123456' }],
    ['a picture', { stripType: 'image', stripPicture: PICTURE }, { picture: PICTURE }],
    ['no picture before one was uploaded', { stripType: 'image' }, { color: '#123456' }],
    ['no picture while another type is chosen', { stripPicture: PICTURE }, { color: '#123456' }],
    ['a preset', { stripType: 'preset', stripPreset: 'books' }, { preset: 'books' }],
    [
      'the colour for an unknown preset',
      { stripType: 'preset', stripPreset: 'moon', stripColor: '#ABCDEF' },
      { color: '#ABCDEF' },
    ],
  ] satisfies [string, Partial<StripAppearance>, object][])('is %s', (_what, changes, layer) => {
    expect(designWith(changes).layer).toEqual(layer);
  });
});

describe('the rewards of a design', () => {
  it('lists the active ones within the stamps of the card, each once, from the lowest', () => {
    const rewards = [reward(10), reward(5), reward(5), reward(7, false), reward(11)];
    expect(createStripDesign(CARD, rewards).rewards).toEqual([5, 10]);
  });

  it('includes exactly the rewards within the card', () => {
    const rewards = fc.array(
      fc.record({ stampsRequired: fc.integer({ min: 1, max: 40 }), active: fc.boolean() }),
    );
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 21 }), rewards, (stampsRequired, all) => {
        const rewardStamps = createStripDesign({ ...CARD, stampsRequired }, all).rewards;
        for (let stamp = 1; stamp <= 21; stamp++) {
          const isDue = all.some((entry) => entry.active && entry.stampsRequired === stamp);
          expect(rewardStamps.includes(stamp)).toBe(isDue && stamp <= stampsRequired);
        }
      }),
    );
  });
});

describe('the hash of a design', () => {
  it('does not depend on the order of rewards, and changes with everything visible', () => {
    const hash = hashDesign(createStripDesign(CARD, [reward(5), reward(10)]));
    expect(hash).toMatch(/^[0-9a-f]{32}$/);
    expect(hashDesign(createStripDesign(CARD, [reward(10), reward(5)]))).toBe(hash);
    const others = [
      createStripDesign(CARD, [reward(5)]),
      designWith({ stampsRequired: 11 }),
      designWith({ stampIcon: 'heart' }),
      designWith({ stampColor: '#000000' }),
      designWith({ stampBackgroundColor: '#000000' }),
      designWith({ cardColor: '#000000' }),
      designWith({ stripColor: '#000000' }),
      designWith({ stripOpacity: 99.5 }),
      designWith({ stripType: 'preset', stripPreset: 'books' }),
      designWith({ stripType: 'image', stripPicture: PICTURE }),
    ].map(hashDesign);
    expect(new Set([hash, ...others]).size).toBe(11);
  });

  it('does not depend on fields that are not visible', () => {
    expect(hashDesign(designWith({ stripPicture: PICTURE, stripPreset: 'books' }))).toBe(
      hashDesign(designWith({})),
    );
  });
});

it('countFilledStamps returns no more stamps than the card has', () => {
  expect([0, 9, 10, 25].map((count) => countFilledStamps(count, designWith({})))).toEqual([
    0, 9, 10, 10,
  ]);
});

it('toStripUrl and toLogoUrl build the URLs of images from their hashes', () => {
  expect(toStripUrl('https://x.example', 'ab', 3, 'hero')).toBe(
    'https://x.example/img/strip/ab/3@hero.png',
  );
  expect(toLogoUrl('https://x.example', 'ab')).toBe('https://x.example/img/logo/ab.png');
});
