import { beforeAll, describe, expect, it } from '@jest/globals';
import type { CardJson } from '#loyalty/cards/card.dto.js';
import type { RewardJson } from '#loyalty/rewards/reward.dto.js';
import { expectFailure, expectRefused, useSharedService } from '../support/http/contract.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';

const service = useSharedService();
const store = service.useStore();
let cards: string;

beforeAll(async () => {
  cards = `${store.store}/cards`;
});

const DEFAULTS = {
  card_color: '#6B4226',
  text_color: '#FFFFFF',
  stamp_icon: 'coffee',
  stamp_color: '#6B4226',
  stamp_background_color: '#FFFFFF',
  stamps_required: 10,
  initial_stamps: 0,
  show_member_field: true,
  show_stamps_to_reward_field: true,
  auxiliary_fields: [],
  strip_type: 'color',
  strip_color: null,
  strip_opacity: 100,
  strip_preset: null,
  header_text: null,
  expires_at: null,
  max_stamps_per_request: null,
  max_stamps_per_day: null,
  min_seconds_between_stamps: null,
  barcode_format: 'qr',
  stamp_message: null,
  reward_message: null,
  redemption_message: null,
};

/** Another value than the default for every written field. */
const WRITTEN = {
  name: 'Tea card',
  card_color: '#112233',
  text_color: '#000000',
  stamp_icon: 'heart',
  stamp_color: '#ABCDEF',
  stamp_background_color: '#123ABC',
  stamps_required: 7,
  initial_stamps: 2,
  show_member_field: false,
  show_stamps_to_reward_field: false,
  strip_type: 'preset',
  strip_color: '#445566',
  strip_opacity: 42.5,
  strip_preset: 'bakery',
  header_text: 'Thank you',
  expires_at: '2090-05-31T22:00:00.000Z',
  max_stamps_per_request: 3,
  max_stamps_per_day: 5,
  min_seconds_between_stamps: 60,
  barcode_format: 'pdf417',
  stamp_message: '{missing} more to your {reward}',
  reward_message: 'Your {reward} is waiting',
  redemption_message: 'Enjoy!',
};
const AUXILIARY = [{ label: 'Tel', value: '123' }, { value: 'open daily' }];
const AUXILIARY_SHOWN = [
  { key: 'aux_1', label: 'Tel', value: '123' },
  { key: 'aux_2', label: null, value: 'open daily' },
];

const COLOURS = [
  'card_color',
  'text_color',
  'stamp_color',
  'stamp_background_color',
  'strip_color',
] as const;
const LIMITS = [
  'max_stamps_per_request',
  'max_stamps_per_day',
  'min_seconds_between_stamps',
] as const;

const MESSAGES = ['stamp_message', 'reward_message', 'redemption_message'] as const;

// prettier-ignore
const ICONS = [
  'coffee', 'heart', 'star', 'check', 'smile', 'cup', 'bubble_tea', 'beer', 'wine', 'cocktail', 'ice_cream',
  'cake', 'croissant', 'bread', 'pizza', 'burger', 'taco', 'sushi', 'salad', 'scissors', 'razor', 'nail_polish',
  'lipstick', 'spa', 'dumbbell', 'yoga', 'paw', 'flower', 'leaf', 'book', 'shopping_bag', 'gift', 'car', 'bike',
  'ticket', 'crown', 'diamond', 'sun',
];

const post = (card: object) => store.post<CardJson>(cards, { card: { name: 'Coffee', ...card } });
const patch = (id: number, card: object) => store.patch<CardJson>(`${cards}/${id}`, { card });
const show = async (id: number) => (await store.get<CardJson>(`${cards}/${id}`)).body;

async function make(card: object = {}): Promise<CardJson> {
  const { status, body } = await post(card);
  expect(status).toBe(201);
  return body;
}

/** A store with an active, an archived and another active card. */
async function threeCards() {
  const own = await service.newStore();
  const ids: number[] = [];
  for (const name of ['One', 'Two', 'Three']) {
    const { body } = await own.post<CardJson>(`${own.store}/cards`, { card: { name } });
    ids.push(body.id);
  }
  await own.post(`${own.store}/cards/${ids[1]}/archive`);
  const list = async (query = '') =>
    (await own.get<CardJson[]>(`${own.store}/cards${query}`)).body.map(({ id }) => id);
  return { ids, list };
}

describe('listing cards', () => {
  it('CARD-01 The list has the active cards of the store, in the order of ids', async () => {
    const { ids, list } = await threeCards();
    expect(await list()).toEqual([ids[0], ids[2]]);
  });

  it('CARD-02 A blank `scope` is the same as `active`', async () => {
    const { ids, list } = await threeCards();
    for (const scope of ['', '%20', 'active']) {
      expect(await list(`?scope=${scope}`)).toEqual([ids[0], ids[2]]);
    }
    expect(await list('?scope')).toEqual([ids[0], ids[2]]);
  });

  it('CARD-03 `scope=archived` lists the archived cards only', async () => {
    const { ids, list } = await threeCards();
    expect(await list('?scope=archived')).toEqual([ids[1]]);
  });

  it('CARD-04 `scope=all` lists active and archived cards', async () => {
    const { ids, list } = await threeCards();
    expect(await list('?scope=all')).toEqual(ids);
  });

  it('CARD-05 Any other `scope` means `active`', async () => {
    const { ids, list } = await threeCards();
    for (const scope of ['everything', 'ALL', '1']) {
      expect(await list(`?scope=${scope}`)).toEqual([ids[0], ids[2]]);
    }
  });

  it('CARD-06 The list and the single card show the same', async () => {
    const own = await service.newStore();
    await enrol(own, { rewards: [1, 2], card: WRITTEN });
    const { body } = await own.get<CardJson[]>(`${own.store}/cards`);
    const { body: card } = await own.get<CardJson>(`${own.store}/cards/${body[0]?.id}`);
    expect(body).toEqual([card]);
  });
});

describe('a card', () => {
  it('CARD-07 A card has exactly the documented fields', async () => {
    const { id } = await make();
    expect(Object.keys(await show(id)).sort()).toEqual(
      [
        ...Object.keys(DEFAULTS),
        'id',
        'name',
        'archived_at',
        'rewards_count',
        'customer_cards_count',
        'warnings',
        'created_at',
        'updated_at',
      ].sort(),
    );
  });

  it('CARD-08 A card of another store is 404, for reading, changing and archiving', async () => {
    const otherStore = await service.newStore();
    const { card } = await enrol(otherStore);
    const path = `${cards}/${card.id}`;
    expectFailure(await store.get(path), 404, 'not_found');
    expectFailure(await store.patch(path, { card: { name: 'Mine' } }), 404, 'not_found');
    expectFailure(await store.post(`${path}/archive`), 404, 'not_found');
    expectFailure(await store.post(`${path}/unarchive`), 404, 'not_found');
    const { body } = await otherStore.get<CardJson>(`${otherStore.store}/cards/${card.id}`);
    expect([body.name, body.archived_at]).toEqual([card.name, null]);
  });
});

describe('writing a card', () => {
  it('CARD-09 A card can be created with just a name, and has the documented defaults', async () => {
    const { status, body } = await store.post<CardJson>(cards, { card: { name: 'Coffee' } });
    expect(status).toBe(201);
    expect(body).toEqual({
      ...DEFAULTS,
      id: expect.any(Number),
      name: 'Coffee',
      warnings: [],
      archived_at: null,
      rewards_count: 0,
      customer_cards_count: 0,
      created_at: expect.any(String),
      updated_at: expect.any(String),
    });
    expect(await show(body.id)).toEqual(body);
  });

  it('CARD-10 A card without a `name` is 422 `name`', async () => {
    expectRefused(await store.post(cards, { card: {} }), 'name');
    expectRefused(await store.post(cards, { card: { ...WRITTEN, name: null } }), 'name');
  });

  it('CARD-11 Every writable field is accepted on create', async () => {
    const { status, body } = await post({ ...WRITTEN, auxiliary_fields: AUXILIARY });
    expect(status).toBe(201);
    expect(body).toMatchObject({ ...WRITTEN, auxiliary_fields: AUXILIARY_SHOWN });
    expect(await show(body.id)).toEqual(body);
  });

  it('CARD-12 Every writable field is accepted on PATCH', async () => {
    const { id } = await make();
    const { status, body } = await patch(id, { ...WRITTEN, auxiliary_fields: AUXILIARY });
    expect(status).toBe(200);
    expect(body).toMatchObject({ ...WRITTEN, auxiliary_fields: AUXILIARY_SHOWN });
    expect(await show(id)).toEqual(body);
  });

  it('CARD-13 A colour is `#RGB` or `#RRGGBB` and is returned as upper-case `#RRGGBB`', async () => {
    for (const field of COLOURS) {
      expect((await make({ [field]: '#a1b2c3' }))[field]).toBe('#A1B2C3');
      expect((await make({ [field]: '#fA0' }))[field]).toBe('#FFAA00');
    }
  });

  it('CARD-14 Anything but a colour is 422 on the field, for each of the five colours', async () => {
    for (const field of COLOURS) {
      for (const wrong of [
        'red',
        'FFFFFF',
        '#FF',
        '#FFFF',
        '#GGGGGG',
        '#1122334',
        7,
        'rgb(0,0,0)',
      ]) {
        expectRefused(await post({ [field]: wrong }), field);
      }
    }
  });

  it('CARD-15 Each documented `stamp_icon` is accepted', async () => {
    const { id } = await make();
    for (const stamp_icon of ICONS) {
      const { status, body } = await patch(id, { stamp_icon });
      expect([status, body.stamp_icon]).toEqual([200, stamp_icon]);
    }
  });

  it('CARD-16 Any other `stamp_icon` is 422 `stamp_icon`', async () => {
    for (const stamp_icon of ['tea', 'Coffee', '☕', 7]) {
      expectRefused(await post({ stamp_icon }), 'stamp_icon');
    }
  });

  it('CARD-17 `stamps_required` accepts 1 and 21', async () => {
    expect((await make({ stamps_required: 1 })).stamps_required).toBe(1);
    expect((await make({ stamps_required: 21 })).stamps_required).toBe(21);
  });

  it('CARD-18 `stamps_required` below 1 or above 21 is 422 `stamps_required`', async () => {
    const { id } = await make();
    for (const stamps_required of [0, -1, 22, 1000]) {
      expectRefused(await post({ stamps_required }), 'stamps_required');
      expectRefused(await patch(id, { stamps_required }), 'stamps_required');
    }
  });

  it('CARD-19 `initial_stamps` may be 0 up to one less than `stamps_required`', async () => {
    for (const [stamps_required, initial_stamps] of [
      [1, 0],
      [5, 4],
      [21, 20],
    ]) {
      expect((await make({ stamps_required, initial_stamps })).initial_stamps).toBe(initial_stamps);
    }
  });

  it('CARD-20 `initial_stamps` of `stamps_required` or more is 422 `initial_stamps`', async () => {
    for (const [stamps_required, initial_stamps] of [
      [1, 1],
      [5, 5],
      [5, 6],
      [21, 21],
    ]) {
      expectRefused(await post({ stamps_required, initial_stamps }), 'initial_stamps');
    }
    expectRefused(await post({ initial_stamps: 10 }), 'initial_stamps');
  });

  it('CARD-21 `initial_stamps` below 0 is 422 `initial_stamps`', async () => {
    expectRefused(await post({ initial_stamps: -1 }), 'initial_stamps');
  });

  it("CARD-22 A PATCH of `initial_stamps` alone is checked against the card's `stamps_required`", async () => {
    const { id } = await make({ stamps_required: 5 });
    expectRefused(await patch(id, { initial_stamps: 5 }), 'initial_stamps');
    expect((await patch(id, { initial_stamps: 4 })).body.initial_stamps).toBe(4);
  });

  it("CARD-23 A PATCH of `stamps_required` alone to the card's `initial_stamps` or less is 422 `initial_stamps`", async () => {
    const { id } = await make({ stamps_required: 10, initial_stamps: 4 });
    for (const stamps_required of [3, 4]) {
      expectRefused(await patch(id, { stamps_required }), 'initial_stamps');
    }
    expect((await patch(id, { stamps_required: 5 })).body.stamps_required).toBe(5);
  });

  it('CARD-24 A PATCH of `stamps_required` and `initial_stamps` is checked against the resulting values', async () => {
    const { id } = await make({ stamps_required: 5, initial_stamps: 4 });
    expect((await patch(id, { stamps_required: 3, initial_stamps: 2 })).status).toBe(200);
    expect((await patch(id, { stamps_required: 12, initial_stamps: 11 })).status).toBe(200);
    const refused = await patch(id, { stamps_required: 8, initial_stamps: 8 });
    expectRefused(refused, 'initial_stamps');
  });

  it('CARD-25 Elements of `auxiliary_fields` get the keys `aux_1` and `aux_2`, which are their keys in passes too', async () => {
    const { auxiliary_fields } = await make({ auxiliary_fields: AUXILIARY });
    expect(auxiliary_fields).toEqual(AUXILIARY_SHOWN);
  });

  it('CARD-26 A `key` in `auxiliary_fields` of the request is ignored', async () => {
    const { auxiliary_fields } = await make({ auxiliary_fields: [{ key: 'mine', value: 'x' }] });
    expect(auxiliary_fields).toEqual([{ key: 'aux_1', label: null, value: 'x' }]);
  });

  it('CARD-27 An element of `auxiliary_fields` without a label, or with a blank one, has the `label` null', async () => {
    for (const label of [undefined, null, '', ' ']) {
      const { auxiliary_fields } = await make({ auxiliary_fields: [{ label, value: 'x' }] });
      expect(auxiliary_fields).toEqual([{ key: 'aux_1', label: null, value: 'x' }]);
    }
  });

  it('CARD-28 Entirely blank elements of `auxiliary_fields` are dropped and do not count', async () => {
    const blank = [{}, { label: '', value: ' ' }, { label: null, value: null }, { value: '' }];
    const { auxiliary_fields } = await make({
      auxiliary_fields: [blank[0], AUXILIARY[0], blank[1], blank[2], AUXILIARY[1], blank[3]],
    });
    expect(auxiliary_fields).toEqual(AUXILIARY_SHOWN);
  });

  it('CARD-29 More than two `auxiliary_fields` are 422 `auxiliary_fields`', async () => {
    const auxiliary_fields = [{ value: '1' }, { value: '2' }, { value: '3' }];
    expectRefused(await post({ auxiliary_fields }), 'auxiliary_fields');
  });

  it('CARD-30 A label without a value is 422 `auxiliary_fields`', async () => {
    for (const value of [undefined, null, '', ' ']) {
      expectRefused(
        await post({ auxiliary_fields: [{ label: 'Tel', value }] }),
        'auxiliary_fields',
      );
    }
  });

  it('CARD-31 Anything that is not a list of objects is 422 `auxiliary_fields`', async () => {
    for (const auxiliary_fields of ['x', { value: 'x' }, ['x'], [7], [[]], [{ value: 7 }]]) {
      expectRefused(await post({ auxiliary_fields }), 'auxiliary_fields');
    }
  });

  it('CARD-32 `auxiliary_fields` in a PATCH replace the previous ones, and an empty list clears them', async () => {
    const { id } = await make({ auxiliary_fields: AUXILIARY });
    const replaced = await patch(id, { auxiliary_fields: [{ value: 'new' }] });
    expect(replaced.body.auxiliary_fields).toEqual([{ key: 'aux_1', label: null, value: 'new' }]);
    expect((await patch(id, { auxiliary_fields: [] })).body.auxiliary_fields).toEqual([]);
  });

  it('CARD-33 Any other `strip_type` is 422 `strip_type`', async () => {
    for (const strip_type of ['colour', 'picture', 'Color', 7]) {
      expectRefused(await post({ strip_type }), 'strip_type');
    }
  });

  it('CARD-34 The `strip_type` `image` without a picture and `preset` without a preset are accepted', async () => {
    for (const strip_type of ['image', 'preset', 'color']) {
      expect(await make({ strip_type })).toMatchObject({ strip_type, strip_preset: null });
    }
  });

  it('CARD-35 `strip_opacity` accepts 0, 100 and fractions in between', async () => {
    for (const strip_opacity of [0, 0.5, 33.3, 99.99, 100]) {
      expect((await make({ strip_opacity })).strip_opacity).toBe(strip_opacity);
    }
  });

  it('CARD-36 `strip_opacity` below 0, above 100 or not a number is 422 `strip_opacity`', async () => {
    for (const strip_opacity of [-0.1, -1, 100.1, 101, 'much', [50], true]) {
      expectRefused(await post({ strip_opacity }), 'strip_opacity');
    }
  });

  it('CARD-37 `strip_preset` accepts any valid name, even one that is not drawn', async () => {
    for (const strip_preset of ['coffee', 'books', 'my-own_1', 'x'.repeat(64)]) {
      expect((await make({ strip_preset })).strip_preset).toBe(strip_preset);
    }
  });

  it('CARD-38 Any other `strip_preset` is 422 `strip_preset`', async () => {
    for (const strip_preset of ['Coffee', 'a b', 'x'.repeat(65), '../x', 7]) {
      expectRefused(await post({ strip_preset }), 'strip_preset');
    }
  });

  it('CARD-39 `header_text` longer than 255 is 422 `header_text`', async () => {
    expectRefused(await post({ header_text: 'x'.repeat(256) }), 'header_text');
    expect((await make({ header_text: 'x'.repeat(255) })).header_text).toHaveLength(255);
  });

  it('CARD-40 `expires_at` accepts ISO 8601 with any offset and is returned in UTC', async () => {
    for (const [input, meant] of [
      ['2090-05-31T12:00:00Z', '2090-05-31T12:00:00.000Z'],
      ['2090-05-31T12:00:00.123Z', '2090-05-31T12:00:00.123Z'],
      ['2090-05-31T12:00:00+02:00', '2090-05-31T10:00:00.000Z'],
      ['2090-05-31T22:30-05:00', '2090-06-01T03:30:00.000Z'],
      ['2090-05-31', '2090-05-31T23:59:59.999Z'],
    ]) {
      expect((await make({ expires_at: input })).expires_at).toBe(meant);
    }
  });

  it('CARD-41 `expires_at` may be in the past', async () => {
    const { expires_at } = await make({ expires_at: '2001-01-01T00:00:00Z' });
    expect(expires_at).toBe('2001-01-01T00:00:00.000Z');
  });

  it('CARD-42 An `expires_at` that is not a time, or is on a day that does not exist, is 422 `expires_at`', async () => {
    for (const expires_at of [
      'tomorrow',
      '31.05.2090',
      '2090-02-30T00:00:00Z',
      '2090-13-01',
      '2090-05-31T25:00:00Z',
      1_700_000_000,
      {},
    ]) {
      expectRefused(await post({ expires_at }), 'expires_at');
    }
  });

  it('CARD-43 null in a PATCH clears `strip_color`, `strip_preset`, `header_text`, `expires_at`, the three limits and the three messages', async () => {
    const { id } = await make(WRITTEN);
    const texts = ['strip_color', 'strip_preset', 'header_text', 'expires_at'];
    const nullable = [...texts, ...LIMITS, ...MESSAGES];
    for (const field of nullable) {
      const { status, body } = await patch(id, { [field]: null });
      expect([field, status, body[field as keyof CardJson]]).toEqual([field, 200, null]);
    }
  });

  it('CARD-44 Read-only fields are ignored, on create and on PATCH', async () => {
    const readOnly = {
      id: 1,
      archived_at: '2020-01-01T00:00:00Z',
      rewards_count: 9,
      customer_cards_count: 9,
      created_at: '2020-01-01T00:00:00Z',
      updated_at: '2020-01-01T00:00:00Z',
    };
    const card = await make(readOnly);
    expect(card).toMatchObject({ archived_at: null, rewards_count: 0, customer_cards_count: 0 });
    expect(card.created_at > '2026').toBe(true);
    const { body } = await patch(card.id, { ...readOnly, name: 'Tea' });
    const { updated_at } = body;
    expect(body).toEqual({ ...card, name: 'Tea', updated_at });
    expect(updated_at >= card.updated_at).toBe(true);
  });

  it('CARD-45 PATCH changes only the fields it names', async () => {
    const card = await make({ ...WRITTEN, auxiliary_fields: AUXILIARY });
    for (const change of [{ name: 'Other' }, { stamps_required: 9 }, { header_text: 'Hello' }]) {
      const before = await show(card.id);
      const { body } = await patch(card.id, change);
      expect({ ...body, updated_at: '' }).toEqual({ ...before, ...change, updated_at: '' });
    }
  });

  it('CARD-46 A PATCH with an empty `card` changes nothing and is 200', async () => {
    const card = await make(WRITTEN);
    const { status, body } = await patch(card.id, {});
    expect([status, body]).toEqual([200, card]);
  });

  it('CARD-47 A PATCH that is refused changes nothing', async () => {
    const card = await make(WRITTEN);
    expectRefused(await patch(card.id, { name: 'Other', stamps_required: 99 }), 'stamps_required');
    expect(await show(card.id)).toEqual(card);
  });

  it('CARD-48 A change updates `updated_at`, not `created_at`', async () => {
    const card = await make();
    const { body } = await patch(card.id, { name: 'Tea' });
    expect(body.created_at).toBe(card.created_at);
    expect(body.updated_at > card.updated_at).toBe(true);
  });

  it("CARD-49 `rewards_count` counts the card's rewards, inactive ones too, deleted ones not", async () => {
    const { card, rewards } = await enrol(store, { rewards: [1, 2, 3] });
    const path = `${store.store}/rewards`;
    await store.patch<RewardJson>(`${path}/${rewards[0]?.id}`, { reward: { active: false } });
    expect((await show(card.id)).rewards_count).toBe(3);
    await store.delete(`${path}/${rewards[1]?.id}`);
    expect((await show(card.id)).rewards_count).toBe(2);
  });

  it('CARD-50 `customer_cards_count` counts the customer cards issued', async () => {
    const { card } = await enrol(store);
    expect((await show(card.id)).customer_cards_count).toBe(1);
    await store.post(`${store.store}/customers`, {
      customer: { first_name: 'Bea', email: 'bea@example.com' },
      card_id: card.id,
    });
    expect((await show(card.id)).customer_cards_count).toBe(2);
  });

  it('CARD-56 Each of the three stamping limits below 1 is 422 on the field', async () => {
    for (const field of LIMITS) {
      expect((await make({ [field]: 1 }))[field]).toBe(1);
      for (const wrong of [0, -1, 1.5, 'x']) expectRefused(await post({ [field]: wrong }), field);
    }
  });
});

describe('warnings', () => {
  it('CARD-59 A card whose filled and empty stamps look alike, or whose `text_color` has a contrast below 3 to its `card_color`, is accepted with a warning', async () => {
    const codes = ({ warnings }: CardJson) => warnings.map(({ code }) => code);
    const card = await make();
    expect(card.warnings).toEqual([]);
    const white = { card_color: '#FFF', stamp_color: '#FFF', stamp_background_color: '#FFF' };
    const bad = await post({ ...white, text_color: '#EEE' });
    expect([bad.status, codes(bad.body)]).toEqual([
      201,
      ['stamps_look_alike', 'text_hard_to_read'],
    ]);
    expect((await show(bad.body.id)).warnings).toEqual(bad.body.warnings);
    const changed = await patch(card.id, { text_color: '#6B4226' });
    expect([changed.status, codes(changed.body)]).toEqual([200, ['text_hard_to_read']]);
  });

  it('CARD-64 A card whose stamps would hardly be seen is drawn in other colours or with outlines, and its `warnings` have the code `stamps_recolored`, unless they have `stamps_look_alike`', async () => {
    const codes = ({ warnings }: CardJson) => warnings.map(({ code }) => code);
    for (const [colors, expected] of [
      [{}, []],
      // White on cream: no icon is seen on its disc.
      [{ stamp_color: '#F4F4F4' }, ['stamps_recolored']],
      // Discs that stand out from the card, but not enough.
      [{ stamp_background_color: '#9A7A5E', stamp_color: '#FFFFFF' }, ['stamps_recolored']],
      [{ stamp_background_color: '#6B4226', stamp_color: '#FFFFFF' }, ['stamps_recolored']],
      [{ strip_type: 'preset', strip_preset: 'bakery' }, ['stamps_recolored']],
      [{ strip_type: 'preset', strip_preset: 'coffee' }, []],
    ] as const) {
      expect([colors, codes((await post(colors)).body)]).toEqual([colors, expected]);
    }
  });

  it('CARD-65 `header_text` and `auxiliary_fields` are on the front of Google and Apple passes', async () => {
    const hidden = async (fields: object) =>
      (await post(fields)).body.warnings.map(({ code, message }) => {
        expect(code).toBe('field_not_on_front');
        return /room for (\w+)/.exec(message)?.[1];
      });
    const short = { label: 'Wifi', value: 'latte' };
    const long = { label: null, value: 'We are open on every day of the year, at night as well' };
    expect(await hidden({ auxiliary_fields: [short, short], header_text: 'Hello' })).toEqual([]);
    expect(await hidden({ auxiliary_fields: [short, long], header_text: 'Hello' })).toEqual([
      'aux_2',
    ]);
    expect(await hidden({ auxiliary_fields: [long, long] })).toEqual(['aux_1', 'aux_2']);
    expect(await hidden({ auxiliary_fields: [short], header_text: long.value })).toEqual([
      'header_text',
    ]);
    expect(await hidden({ header_text: 'Two\nlines' })).toEqual(['header_text']);
  });
});

describe('passes of a card', () => {
  it('CARD-60 Any other `barcode_format` is 422 `barcode_format`', async () => {
    for (const barcode_format of ['QR', 'ean13', '', 1]) {
      expectRefused(await post({ barcode_format }), 'barcode_format');
    }
    const { id } = await make({ barcode_format: 'code128' });
    expectRefused(await patch(id, { barcode_format: 'datamatrix' }), 'barcode_format');
    expect((await show(id)).barcode_format).toBe('code128');
  });

  it("CARD-61 A card's message may have `{stamps}`, `{reward}`, `{card}` and `{store}` in it, `stamp_message` also `{missing}`", async () => {
    const all = '{stamps} {reward} {card} {store} {';
    const messages = {
      stamp_message: `${all} {missing}`,
      reward_message: all,
      redemption_message: 'x'.repeat(160),
    };
    expect(await make(messages)).toMatchObject(messages);
  });

  it("CARD-62 A card's message with anything else in braces, or of more than 160 characters, is 422 on the field", async () => {
    for (const field of MESSAGES) {
      for (const text of ['{name}', '{ reward }', '{}', 'x'.repeat(161), 7]) {
        expectRefused(await post({ [field]: text }), field);
      }
    }
    expectRefused(await post({ reward_message: '{missing}' }), 'reward_message');
    const { id } = await make();
    expectRefused(await patch(id, { stamp_message: '{email}' }), 'stamp_message');
  });
});

describe('the archive', () => {
  it('CARD-51 `archive` sets `archived_at` and returns the card', async () => {
    const { id } = await make();
    const { status, body } = await store.post<CardJson>(`${cards}/${id}/archive`);
    expect([status, body.id]).toEqual([200, id]);
    expect(body.archived_at).toMatch(/^\d{4}-/);
    expect(await show(id)).toEqual(body);
  });

  it('CARD-52 `unarchive` clears `archived_at` and returns the card', async () => {
    const { id } = await make();
    await store.post(`${cards}/${id}/archive`);
    const { status, body } = await store.post<CardJson>(`${cards}/${id}/unarchive`);
    expect([status, body.id, body.archived_at]).toEqual([200, id, null]);
    expect(await show(id)).toEqual(body);
  });

  it('CARD-53 Archiving an archived card changes nothing', async () => {
    const { id } = await make();
    const { body } = await store.post<CardJson>(`${cards}/${id}/archive`);
    const again = await store.post<CardJson>(`${cards}/${id}/archive`);
    expect([again.status, again.body]).toEqual([200, body]);
  });

  it('CARD-54 An archived card can be read and changed', async () => {
    const { id } = await make();
    const { body } = await store.post<CardJson>(`${cards}/${id}/archive`);
    const { status, body: changed } = await patch(id, { name: 'Old' });
    expect([status, changed.name, changed.archived_at]).toEqual([200, 'Old', body.archived_at]);
    expect(await show(id)).toEqual(changed);
  });

  it('CARD-55 There is no operation that deletes a card', async () => {
    const { id } = await make();
    expect([404, 405]).toContain((await store.delete(`${cards}/${id}`)).status);
    expect((await show(id)).id).toBe(id);
  });
});
