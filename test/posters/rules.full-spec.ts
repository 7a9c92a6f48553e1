import { describe, expect, it } from '@jest/globals';
import type { CardJson } from '#loyalty/cards/card.dto.js';
import type { PosterJson } from '#loyalty/posters/poster.dto.js';
import {
  expectFailure,
  expectRefused,
  useSharedService,
  type ContractClient,
} from '../support/http/contract.js';
import { eventually } from '../support/jest/eventually.js';

const service = useSharedService();

async function newCard(store: ContractClient, input: object = {}): Promise<CardJson> {
  const card = { name: 'Coffee', ...input };
  return (await store.post<CardJson>(`${store.store}/cards`, { card })).body;
}

const make = (store: ContractClient, poster: object) =>
  store.post<PosterJson>(`${store.store}/posters`, { poster });

/** A store with a card and a poster for it. */
async function newPoster(input: object = {}) {
  const store = await service.newStore();
  const card = await newCard(store);
  const { body: poster } = await make(store, { card_id: card.id, ...input });
  const path = `${store.store}/posters/${poster.id}`;
  const patch = (changes: object) => store.patch<PosterJson>(path, { poster: changes });
  return { store, card, poster, path, patch };
}

const typesOf = async ({ id }: PosterJson) =>
  (await service.running.history())
    .filter(({ stream }) => stream === `poster-${id}`)
    .map(({ type }) => type);

/** Past the moment of the last change, so that the next one has a time of its own. */
const later = ({ updated_at }: { updated_at: string }) =>
  eventually(
    () => Date.now(),
    (now) => now > Date.parse(updated_at),
  );

/** Every written field with a value that is not its default. */
const OTHERS = {
  title: 'Join us',
  paper_size: 'letter',
  primary_color: '#112233',
  text_color: '#445566',
  secondary_color: '#778899',
  active: false,
  contact_collection_mode: 'phone_only',
  require_email: false,
  require_phone: true,
  require_birthday: true,
  minimum_age: 16,
};

describe('posters', () => {
  it('POSTER-01 A poster can be created with just `card_id`, and has the documented defaults', async () => {
    const store = await service.newStore();
    const card = await newCard(store, {
      name: 'Tea',
      card_color: '#010203',
      text_color: '#040506',
      stamp_background_color: '#070809',
    });
    const response = await make(store, { card_id: card.id });
    expect(response.status).toBe(201);
    const defaults = {
      card_id: card.id,
      title: 'Tea',
      paper_size: 'a4',
      primary_color: '#010203',
      text_color: '#040506',
      secondary_color: '#070809',
      active: true,
      contact_collection_mode: 'email_and_phone',
      collect_email: true,
      collect_phone: true,
      require_email: true,
      require_phone: false,
      require_birthday: false,
      minimum_age: null,
    };
    expect(response.body).toMatchObject(defaults);
    const nulls = Object.fromEntries(Object.keys(OTHERS).map((name) => [name, null]));
    expect((await make(store, { card_id: card.id, ...nulls })).body).toMatchObject(defaults);
    const bare = await store.post<PosterJson>(`${store.store}/posters`, { card_id: card.id });
    expect(bare.body).toMatchObject(defaults);
    expectRefused(await store.post(`${store.store}/posters`, {}), 'poster');
  });

  it('POSTER-02 A poster has exactly the documented fields', async () => {
    const { store, poster } = await newPoster();
    const names =
      'id account_id card_id title paper_size primary_color text_color secondary_color active contact_collection_mode collect_email collect_phone require_email require_phone require_birthday minimum_age signup_url qr_code_url display_url warnings created_at updated_at';
    expect(Object.keys(poster).sort()).toEqual(names.split(' ').sort());
    expect(poster.account_id).toBe(store.accountId);
  });

  it('POSTER-03 A missing `card_id` is 422 `card_id`', async () => {
    const store = await service.newStore();
    expectRefused(await make(store, { title: 'Join us' }), 'card_id');
    expectRefused(await make(store, { card_id: 'x' }), 'card_id');
  });

  it('POSTER-04 An unknown `card_id`, or one of another store, is 404', async () => {
    const store = await service.newStore();
    const foreign = await newCard(await service.newStore());
    for (const card_id of [foreign.id, 987_654_321]) {
      expectFailure(await make(store, { card_id }), 404, 'not_found');
    }
    expect((await store.get(`${store.store}/posters`)).body).toEqual([]);
  });

  it('POSTER-05 `card_id` in a PATCH is ignored', async () => {
    const { store, card, poster, patch } = await newPoster();
    const otherCard = await newCard(store);
    const changed = await patch({ card_id: otherCard.id, title: 'Join us' });
    expect(changed.body).toMatchObject({ card_id: card.id, title: 'Join us' });
    const ignored = await patch({ card_id: 'nonsense' });
    expect([ignored.status, ignored.body]).toEqual([200, changed.body]);
    expect(await typesOf(poster)).toEqual(['PosterCreated', 'PosterUpdated']);
  });

  it('POSTER-06 Defaults are copied when the poster is created: later changes of the card do not affect it', async () => {
    const { store, card, poster, path } = await newPoster();
    await store.patch(`${store.store}/cards/${card.id}`, {
      card: {
        name: 'Tea',
        card_color: '#010203',
        text_color: '#040506',
        stamp_background_color: '#070809',
      },
    });
    expect((await store.get(path)).body).toEqual(poster);
  });

  it('POSTER-07 A `title` longer than 255 is 422 `title`', async () => {
    const { store, card, patch } = await newPoster();
    const title = 'x'.repeat(256);
    expectRefused(await make(store, { card_id: card.id, title }), 'title');
    expectRefused(await patch({ title }), 'title');
    const longest = await make(store, { card_id: card.id, title: '☕'.repeat(255) });
    expect(longest.status).toBe(201);
  });

  it('POSTER-08 Any other `paper_size` is 422 `paper_size`', async () => {
    const { store, card, patch } = await newPoster();
    for (const paper_size of ['a2', 'A4', 4, ['a4']]) {
      expectRefused(await make(store, { card_id: card.id, paper_size }), 'paper_size');
      expectRefused(await patch({ paper_size }), 'paper_size');
    }
    for (const paper_size of ['a3', 'a5', 'a6', 'letter', 'table_tent', 'sticker', 'a4']) {
      expect((await patch({ paper_size })).body.paper_size).toBe(paper_size);
    }
  });

  it('POSTER-09 Colours are read as for cards; anything else is 422 on the field', async () => {
    const { store, card, patch } = await newPoster();
    for (const name of ['primary_color', 'text_color', 'secondary_color']) {
      const response = await make(store, { card_id: card.id, [name]: '#abc' });
      expect(response.body).toMatchObject({ [name]: '#AABBCC' });
      expect((await patch({ [name]: '#a1b2c3' })).body).toMatchObject({ [name]: '#A1B2C3' });
      for (const wrong of ['red', '#12', '123456', 7]) {
        expectRefused(await make(store, { card_id: card.id, [name]: wrong }), name);
        expectRefused(await patch({ [name]: wrong }), name);
      }
    }
  });

  it('POSTER-10 Any other `contact_collection_mode` is 422 `contact_collection_mode`', async () => {
    const { store, card, patch } = await newPoster();
    for (const contact_collection_mode of ['both', 'EMAIL_ONLY', true]) {
      const wrong = { contact_collection_mode };
      expectRefused(await make(store, { card_id: card.id, ...wrong }), 'contact_collection_mode');
      expectRefused(await patch(wrong), 'contact_collection_mode');
    }
  });

  it('POSTER-11 `collect_email` and `collect_phone` follow from the mode, on create and on PATCH', async () => {
    const { store, card, patch } = await newPoster();
    for (const [contact_collection_mode, collect_email, collect_phone] of [
      ['email_only', true, false],
      ['phone_only', false, true],
      ['email_and_phone', true, true],
    ]) {
      const collected = { contact_collection_mode, collect_email, collect_phone };
      const response = await make(store, { card_id: card.id, contact_collection_mode });
      expect(response.body).toMatchObject(collected);
      const ignored = { collect_email: !collect_email, collect_phone: !collect_phone };
      const changed = await patch({ contact_collection_mode, ...ignored });
      expect(changed.body).toMatchObject(collected);
    }
  });

  it('POSTER-12 With one contact collected, that one is required and the other is not', async () => {
    const { store, card, patch } = await newPoster();
    for (const [contact_collection_mode, require_email, require_phone] of [
      ['phone_only', false, true],
      ['email_only', true, false],
    ] as const) {
      const settled = { contact_collection_mode, require_email, require_phone };
      const response = await make(store, { card_id: card.id, contact_collection_mode });
      expect(response.body).toMatchObject(settled);
      expect((await patch({ contact_collection_mode })).body).toMatchObject(settled);
    }
  });

  it('POSTER-13 With both contacts collected, `require_email` defaults to true and `require_phone` to false', async () => {
    const { store, card } = await newPoster();
    const both = { card_id: card.id, contact_collection_mode: 'email_and_phone' };
    const createFields = async (input: object) => (await make(store, { ...both, ...input })).body;
    expect(await createFields({})).toMatchObject({ require_email: true, require_phone: false });
    expect(await createFields({ require_phone: true })).toMatchObject({
      require_email: true,
      require_phone: true,
    });
    expect(await createFields({ require_email: '0' })).toMatchObject({
      require_email: false,
      require_phone: false,
    });
  });

  it('POSTER-14 `require_email` and `require_phone` may both be set to false', async () => {
    const { store, card, patch } = await newPoster();
    const neither = { require_email: false, require_phone: false };
    expect((await make(store, { card_id: card.id, ...neither })).body).toMatchObject(neither);
    expect((await patch(neither)).body).toMatchObject(neither);
  });

  it('POSTER-15 `minimum_age` below 1, above 120 or not an integer is 422 `minimum_age`', async () => {
    const { store, card, patch } = await newPoster({ require_birthday: true });
    for (const minimum_age of [0, 121, -1, 17.5, 'old', true]) {
      const attributes = { card_id: card.id, require_birthday: true, minimum_age };
      expectRefused(await make(store, attributes), 'minimum_age');
      expectRefused(await patch({ minimum_age }), 'minimum_age');
    }
    expect((await patch({ minimum_age: 1 })).body.minimum_age).toBe(1);
    expect((await patch({ minimum_age: '120' })).body.minimum_age).toBe(120);
  });

  it('POSTER-16 `minimum_age` without `require_birthday` is 422 `minimum_age`; a PATCH is checked against the resulting values', async () => {
    const { store, card, patch } = await newPoster();
    expectRefused(await make(store, { card_id: card.id, minimum_age: 18 }), 'minimum_age');
    expectRefused(await patch({ minimum_age: 18 }), 'minimum_age');
    const adult = { require_birthday: true, minimum_age: 18 };
    expect((await patch(adult)).body).toMatchObject(adult);
    expectRefused(await patch({ require_birthday: false }), 'minimum_age');
    const anyone = { require_birthday: false, minimum_age: null };
    expect((await patch(anyone)).body).toMatchObject(anyone);
    await patch({ require_birthday: true });
    expect((await patch({ minimum_age: 21 })).body).toMatchObject({ minimum_age: 21 });
  });

  it('POSTER-17 `signup_url`, `qr_code_url` and `display_url` are built as documented, from one slug', async () => {
    const { poster } = await newPoster();
    const slug = poster.signup_url.split('/').at(-1) ?? '';
    expect(slug).toMatch(/^[0-9A-Za-z]+$/);
    expect(poster).toMatchObject({
      signup_url: `https://cards.example/join/${slug}`,
      qr_code_url: `https://cards.example/join/${slug}?src=qr`,
      display_url: `https://cards.example/posters/${slug}`,
    });
  });

  it('POSTER-18 No two posters share a slug, and it cannot be guessed from the id', async () => {
    const { store, card } = await newPoster();
    const responses = await Promise.all(
      Array.from({ length: 30 }, () => make(store, { card_id: card.id })),
    );
    const slugs = responses.map(({ body }) => body.signup_url.split('/').at(-1) ?? '');
    expect(new Set(slugs).size).toBe(30);
    // Of 62 characters 18 have more than 96 bits.
    for (const slug of slugs) expect(slug.length * Math.log2(62)).toBeGreaterThan(96);
    // No character of it stands still from one poster to the next.
    for (let i = 0; i < 18; i++)
      expect(new Set(slugs.map((slug) => slug[i])).size).toBeGreaterThan(3);
  });

  it('POSTER-19 A PATCH does not change the URLs of a poster', async () => {
    const { poster, patch } = await newPoster();
    const { signup_url, qr_code_url, display_url } = poster;
    const changed = await patch({ ...OTHERS, signup_url: 'https://x.example', slug: 'x' });
    expect(changed.body).toMatchObject({ signup_url, qr_code_url, display_url });
  });

  it('POSTER-20 The list is in the order of ids, and shows the same as the single poster', async () => {
    const { store, card, poster, path } = await newPoster();
    const { body: second } = await make(store, { card_id: (await newCard(store)).id });
    const { body: third } = await make(store, { card_id: card.id });
    await newPoster();
    const list = await store.get(`${store.store}/posters`);
    expect(list.body).toEqual([poster, second, third]);
    expect((await store.get(path)).body).toEqual(poster);
  });

  it('POSTER-21 `card_id` lists the posters of one card', async () => {
    const { store, card, poster } = await newPoster();
    const otherCard = await newCard(store);
    await make(store, { card_id: otherCard.id });
    const list = (query: string) => store.get<PosterJson[]>(`${store.store}/posters?${query}`);
    expect((await list(`card_id=${card.id}`)).body).toEqual([poster]);
    expect((await list('card_id=987654321')).body).toEqual([]);
    expect((await list('card_id=')).body).toHaveLength(2);
    expectRefused(await list('card_id=x'), 'card_id');
  });

  it('POSTER-22 `active` filters posters as it does rewards', async () => {
    const { store, card, poster } = await newPoster();
    const { body: inactive } = await make(store, { card_id: card.id, active: false });
    const list = async (query: string) => (await store.get(`${store.store}/posters?${query}`)).body;
    for (const no of ['false', '0']) expect(await list(`active=${no}`)).toEqual([inactive]);
    for (const yes of ['true', '1', 'yes']) expect(await list(`active=${yes}`)).toEqual([poster]);
    expect(await list('active=')).toEqual([poster, inactive]);
    expect(await list(`active=0&card_id=${card.id}`)).toEqual([inactive]);
  });

  it('POSTER-23 A poster of another store is 404, for reading, changing and deleting', async () => {
    const store = await service.newStore();
    const { store: otherStore, poster, path } = await newPoster();
    for (const hidden of [path, `${store.store}/posters/${poster.id}`]) {
      expectFailure(await store.get(hidden), 404, 'not_found');
      expectFailure(await store.patch(hidden, { poster: { title: 'Mine' } }), 404, 'not_found');
      expectFailure(await store.patch(hidden, { poster: { title: null } }), 404, 'not_found');
      expectFailure(await store.delete(hidden), 404, 'not_found');
    }
    expect((await otherStore.get(path)).body).toEqual(poster);
  });

  it('POSTER-24 Every writable field is accepted on create and on PATCH', async () => {
    const { store, card, path, patch } = await newPoster();
    expect((await make(store, { card_id: card.id, ...OTHERS })).body).toMatchObject(OTHERS);
    const changed = await patch(OTHERS);
    expect(changed.body).toMatchObject(OTHERS);
    expect((await store.get(path)).body).toEqual(changed.body);
  });

  it('POSTER-25 PATCH changes only the fields it names', async () => {
    const { contact_collection_mode: _, ...fields } = OTHERS;
    for (const [name, value] of Object.entries(fields)) {
      const { poster, patch } = await newPoster({ require_birthday: name === 'minimum_age' });
      const { body } = await patch({ [name]: value });
      expect(body).toEqual({ ...poster, [name]: value, updated_at: body.updated_at });
    }
  });

  it('POSTER-26 null in a PATCH clears `minimum_age`; for any other field it is 422 on the field', async () => {
    const { patch } = await newPoster({ require_birthday: true, minimum_age: 18 });
    const { minimum_age: _, ...fields } = OTHERS;
    for (const name of Object.keys(fields)) expectRefused(await patch({ [name]: null }), name);
    expect((await patch({ minimum_age: null })).body).toMatchObject({
      minimum_age: null,
      require_birthday: true,
    });
  });

  it('POSTER-27 A PATCH that is refused changes nothing', async () => {
    const { store, poster, path, patch } = await newPoster();
    expectRefused(await patch({ title: 'Join us', paper_size: 'a2' }), 'paper_size');
    expectRefused(await patch({ title: 'Join us', minimum_age: 18 }), 'minimum_age');
    expectRefused(await patch({ contact_collection_mode: 'email_only', require_phone: 1 }), [
      'require_phone',
    ]);
    expect((await store.get(path)).body).toEqual(poster);
    expect(await typesOf(poster)).toEqual(['PosterCreated']);
  });

  it('POSTER-28 A deleted poster is gone: 404, and in no list', async () => {
    const { store, card, poster, path, patch } = await newPoster();
    const { body: keptPoster } = await make(store, { card_id: card.id });
    const gone = await store.delete(path);
    expect([gone.status, gone.text]).toEqual([204, '']);
    expectFailure(await store.get(path), 404, 'not_found');
    expectFailure(await patch({ title: 'Join us' }), 404, 'not_found');
    expectFailure(await store.delete(path), 404, 'not_found');
    expect((await store.get(`${store.store}/posters`)).body).toEqual([keptPoster]);
    expect(await typesOf(poster)).toEqual(['PosterCreated', 'PosterDeleted']);
  });

  it('POSTER-29 A change updates `updated_at`, not `created_at`', async () => {
    const { poster, patch } = await newPoster();
    await later(poster);
    const { body } = await patch({ title: 'Join us' });
    expect(body.created_at).toBe(poster.created_at);
    expect(Date.parse(body.updated_at)).toBeGreaterThan(Date.parse(poster.updated_at));
  });

  it('POSTER-30 With one contact collected, a request that contradicts POSTER-12 is 422 `require_email` or `require_phone`', async () => {
    for (const settled of [
      { contact_collection_mode: 'phone_only', require_email: false, require_phone: true },
      { contact_collection_mode: 'email_only', require_email: true, require_phone: false },
    ]) {
      const { contact_collection_mode } = settled;
      const { store, card, path, patch } = await newPoster();
      for (const name of ['require_email', 'require_phone'] as const) {
        const contrary = { contact_collection_mode, [name]: !settled[name] };
        expectRefused(await make(store, { card_id: card.id, ...contrary }), name);
        expectRefused(await patch(contrary), name);
        const agreed = { contact_collection_mode, [name]: settled[name] };
        expect((await make(store, { card_id: card.id, ...agreed })).body).toMatchObject(settled);
      }
      expect((await patch(settled)).body).toMatchObject(settled);
      for (const name of ['require_email', 'require_phone'] as const) {
        expectRefused(await patch({ [name]: !settled[name] }), name);
      }
      expect((await store.get(path)).body).toMatchObject(settled);
    }
  });

  it('POSTER-31 A PATCH to both contacts leaves `require_email` and `require_phone` unchanged unless it names them', async () => {
    const both = { contact_collection_mode: 'email_and_phone' };
    const existingPoster = await newPoster({ contact_collection_mode: 'phone_only' });
    expect((await existingPoster.patch(both)).body).toMatchObject({
      ...both,
      require_email: false,
      require_phone: true,
    });
    const named = await newPoster({ contact_collection_mode: 'phone_only' });
    expect((await named.patch({ ...both, require_phone: false })).body).toMatchObject({
      ...both,
      require_email: false,
      require_phone: false,
    });
  });

  it('POSTER-32 A PATCH that sets fields to their current values changes nothing, `updated_at` included', async () => {
    const { poster, patch } = await newPoster(OTHERS);
    await later(poster);
    for (const same of [{}, OTHERS, { contact_collection_mode: 'phone_only' }, { slug: 'x' }]) {
      expect((await patch(same)).body).toEqual(poster);
    }
    expect(await typesOf(poster)).toEqual(['PosterCreated']);
  });

  it("POSTER-33 A blank `title` becomes the card's name on create and is 422 `title` in a PATCH", async () => {
    const { store, card, patch } = await newPoster();
    expect((await make(store, { card_id: card.id, title: ' ' })).body.title).toBe(card.name);
    expectRefused(await patch({ title: ' ' }), 'title');
  });

  it('POSTER-34 The card of a new poster may be archived', async () => {
    const { store, card } = await newPoster();
    await store.post(`${store.store}/cards/${card.id}/archive`);
    const response = await make(store, { card_id: card.id });
    expect([response.status, response.body.title]).toEqual([201, card.name]);
  });
});
