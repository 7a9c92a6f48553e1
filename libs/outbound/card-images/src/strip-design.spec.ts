import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import {
  designHash,
  filledStamps,
  logoUrl,
  stripDesign,
  stripUrl,
  type StripLooks,
} from './strip-design.js';

const CARD: StripLooks = {
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

const designOf = (changes: Partial<StripLooks>) => stripDesign({ ...CARD, ...changes }, []);
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
      'the colour for a preset that nobody has drawn',
      { stripType: 'preset', stripPreset: 'moon', stripColor: '#ABCDEF' },
      { color: '#ABCDEF' },
    ],
  ] satisfies [string, Partial<StripLooks>, object][])('is %s', (_what, changes, layer) => {
    expect(designOf(changes).layer).toEqual(layer);
  });
});

describe('the rewards of a design', () => {
  it('are the active ones within the stamps of the card, each once, from the lowest', () => {
    const rewards = [reward(10), reward(5), reward(5), reward(7, false), reward(11)];
    expect(stripDesign(CARD, rewards).rewards).toEqual([5, 10]);
  });

  it('never lie outside of the card, and miss none that lies within', () => {
    const rewards = fc.array(
      fc.record({ stampsRequired: fc.integer({ min: 1, max: 40 }), active: fc.boolean() }),
    );
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 21 }), rewards, (stampsRequired, all) => {
        const marked = stripDesign({ ...CARD, stampsRequired }, all).rewards;
        for (let stamp = 1; stamp <= 21; stamp++) {
          const due = all.some((one) => one.active && one.stampsRequired === stamp);
          expect(marked.includes(stamp)).toBe(due && stamp <= stampsRequired);
        }
      }),
    );
  });
});

describe('the hash of a design', () => {
  it('names the same images whatever the order of rewards, and others when anything shown changes', () => {
    const hash = designHash(stripDesign(CARD, [reward(5), reward(10)]));
    expect(hash).toMatch(/^[0-9a-f]{32}$/);
    expect(designHash(stripDesign(CARD, [reward(10), reward(5)]))).toBe(hash);
    const others = [
      stripDesign(CARD, [reward(5)]),
      designOf({ stampsRequired: 11 }),
      designOf({ stampIcon: 'heart' }),
      designOf({ stampColor: '#000000' }),
      designOf({ stampBackgroundColor: '#000000' }),
      designOf({ cardColor: '#000000' }),
      designOf({ stripColor: '#000000' }),
      designOf({ stripOpacity: 99.5 }),
      designOf({ stripType: 'preset', stripPreset: 'books' }),
      designOf({ stripType: 'image', stripPicture: PICTURE }),
    ].map(designHash);
    expect(new Set([hash, ...others]).size).toBe(11);
  });

  it('is the same for what does not show', () => {
    expect(designHash(designOf({ stripPicture: PICTURE, stripPreset: 'books' }))).toBe(
      designHash(designOf({})),
    );
  });
});

it('fills no more stamps than the card has', () => {
  expect([0, 9, 10, 25].map((count) => filledStamps(count, designOf({})))).toEqual([0, 9, 10, 10]);
});

it('addresses images by their design alone', () => {
  expect(stripUrl('https://x.example', 'ab', 3, 'hero')).toBe(
    'https://x.example/img/strip/ab/3@hero.png',
  );
  expect(logoUrl('https://x.example', 'ab')).toBe('https://x.example/img/logo/ab.png');
});
