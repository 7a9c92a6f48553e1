import { describe, expect, it } from '@jest/globals';
import { FRONT, WEIGHTS, type RowField } from '#loyalty/cards/pass-row.js';
import { arrangeFront, type FrontInput } from './apple-front.js';
import { measureText, shortenText } from '#loyalty/cards/text-width.js';

const field = (key: string, label: string, value: string | number, weight: number): RowField => ({
  key,
  label,
  value,
  section: key.startsWith('aux') ? 'auxiliary' : 'secondary',
  weight,
  ...(key === 'to_reward' && { isShort: true }),
});
const input: FrontInput = {
  storeName: 'Corner Café',
  cardName: 'Coffee card',
  logoWidth: null,
  logoContainsName: true,
  headerText: null,
  count: { key: 'stamps', label: 'Stamps', value: '3/10' },
  row: [
    field('member', 'Member', 'Bo Li', WEIGHTS.member),
    field('to_reward', 'To go', 7, WEIGHTS.toReward),
    field('aux_1', 'Open', 'Mo–Sa', WEIGHTS.auxiliary),
    field('aux_2', 'Wifi', 'latte', WEIGHTS.auxiliary),
  ],
};
const arrange = (changes: Partial<FrontInput> = {}) => arrangeFront({ ...input, ...changes });
const keys = (fields: { key: string }[]) => fields.map(({ key }) => key);

describe('arrangeFront', () => {
  it('shows both names at the top, and four short fields below', () => {
    expect(arrange()).toEqual({
      title: 'Corner Café',
      header: [{ key: 'stamps', label: 'Coffee card', value: '3/10' }],
      secondary: [
        { key: 'member', label: 'Member', value: 'Bo Li' },
        { key: 'to_reward', label: 'To go', value: 7 },
      ],
      auxiliary: [
        { key: 'aux_1', label: 'Open', value: 'Mo–Sa' },
        { key: 'aux_2', label: 'Wifi', value: 'latte' },
      ],
      moved: [],
      movedWeight: 0,
      isStoreShortened: false,
      isCardShortened: false,
    });
  });

  it('has the stamps to the reward at the top where the row has no room for them', () => {
    const [, toReward] = input.row;
    const row = [
      field('member', 'Member', 'Ada Lovelace', 1),
      ...(toReward ? [toReward] : []),
      field('aux_1', 'Open', 'Mo–Sa 8–18', 7),
      field('aux_2', 'Phone', '+49 721 1234567', 7),
    ];
    const front = arrange({ row });
    expect([front.header, front.secondary, front.auxiliary, front.moved].map(keys)).toEqual([
      ['to_reward', 'stamps'],
      [],
      ['aux_1', 'aux_2'],
      ['member'],
    ]);
  });

  it('moves a text that fits into no row to the back in full', () => {
    const long = 'Monday to Friday from 8 to 18, Saturday from 9 to 16 o’clock';
    const front = arrange({ row: [...input.row.slice(0, 2), field('aux_1', 'Open', long, 7)] });
    expect(keys(front.secondary)).toEqual(['member', 'to_reward']);
    expect(front.moved).toEqual([{ key: 'aux_1', label: 'Open', value: long }]);
    expect(arrange({ row: [field('aux_1', 'a', 'two\nlines', 7)] }).moved).toHaveLength(1);
  });

  it('shows the header text at the top, else in the row, else on the back', () => {
    expect(keys(arrange({ headerText: 'Hi' }).header)).toEqual(['header', 'stamps']);
    const inRow = arrange({ headerText: 'Thank you, see you', row: [] });
    expect([keys(inRow.header), keys(inRow.auxiliary)]).toEqual([['stamps'], ['header']]);
    expect(keys(arrange({ headerText: 'x'.repeat(99) }).moved)).toEqual(['header']);
  });

  it('shortens names that are longer than the phone is wide, and says so', () => {
    const storeName = 'Bäckerei und Konditorei Müller am Marktplatz';
    const front = arrange({ storeName, cardName: 'Die große Frühstückskarte für alle' });
    expect(front).toMatchObject({ isStoreShortened: true, isCardShortened: true });
    expect(front.title).toMatch(/^Bäckerei.*…$/);
    expect(front.header[0]?.label).toMatch(/^Die große.*…$/);
    const label = measureText(front.header[0]?.label?.toUpperCase() ?? '', FRONT.label);
    const width = 50 + FRONT.gap + measureText(front.title ?? '', FRONT.title) + FRONT.gap + label;
    expect(width).toBeLessThanOrEqual(FRONT.width - 2 * FRONT.edge);
  });

  it('leaves the title to a wide logo, which has the name of the store in it', () => {
    const front = arrange({ logoWidth: 160, headerText: 'Hi' });
    expect(front.title).toBeNull();
    expect(front.header.map(({ label }) => label)).toEqual([undefined, 'Coffee card']);
  });

  it("shows the store's name beside a logo that does not contain it", () => {
    for (const logoWidth of [40, 120, 160]) {
      const front = arrange({ logoWidth, logoContainsName: false });
      expect(front.title).toMatch(/^\S/);
      expect(front.header.at(-1)?.label).toBeDefined();
    }
    expect(arrange({ logoWidth: 60, logoContainsName: false }).title).toBe(input.storeName);
  });
});

describe('shortenText', () => {
  it('ends with a whole word, or with a whole character', () => {
    expect(shortenText('Coffee and cake', 95, 16)).toBe('Coffee…');
    expect(shortenText('👩‍👩‍👧👩‍👩‍👧👩‍👩‍👧', 45, 16)).toBe('👩‍👩‍👧…');
    expect(shortenText('Tea', 120, 16)).toBe('Tea');
  });
});
