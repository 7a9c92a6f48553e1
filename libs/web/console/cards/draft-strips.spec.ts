import { expect, it } from '@jest/globals';
import type { StripDesign } from '#outbound/card-images/strip-design.js';
import { parseStripQuery, renderStripQuery } from './draft-strips.js';

const DESIGN: StripDesign = {
  drawing: 3,
  stamps: 21,
  rewards: [5, 21],
  icon: 'bubble_tea',
  stampColor: '#102030',
  stampBackgroundColor: '#FFFFFF',
  cardColor: '#0A0B0C',
  layer: { color: '#ABCDEF' },
  opacity: 42.5,
};
const parse = (query: string) => parseStripQuery(Object.fromEntries(new URLSearchParams(query)));

it.each([
  DESIGN,
  { ...DESIGN, rewards: [], layer: { preset: 'coffee' } },
  { ...DESIGN, layer: { preset: 'coffee', tint: '#3E7A2E' } },
  { ...DESIGN, layer: { picture: null } },
  { ...DESIGN, layer: { picture: 'a1'.repeat(32) } },
])('parseStripQuery parses what renderStripQuery renders', (design) => {
  const strip = { design, filled: 7, size: 'hero' } as const;
  expect(parse(renderStripQuery(strip))).toEqual(strip);
});

it.each([
  ['21~5-21', '22~5-21'],
  ['21~5-21', '21~5-x'],
  ['bubble_tea', 'bubbles'],
  ['102030', '10203'],
  ['c-ABCDEF', 'c-red'],
  ['c-ABCDEF', 'p-<svg>'],
  ['c-ABCDEF', 'p-coffee-red'],
  ['c-ABCDEF', 'i-../etc'],
  ['42.5', '101'],
  ['~7~', '~22~'],
  ['hero', '9x'],
])('parseStripQuery returns undefined when %s is %s', (from, to) => {
  const query = renderStripQuery({ design: DESIGN, filled: 7, size: 'hero' });
  expect(parse(query.replace(from, to))).toBeUndefined();
});

it('parseStripQuery returns undefined for anything else', () => {
  expect(parseStripQuery({})).toBeUndefined();
  expect(parseStripQuery({ design: ['1', '2'] })).toBeUndefined();
});
