import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { PosterJson } from '#loyalty/posters/poster.dto.js';
import { Browser } from '../support/browser/browser.js';
import { newPoster, SignupForm } from '../support/browser/signup.js';
import { startService, type Client, type LocalService } from '../support/services/service.js';

let service: LocalService;
let store: Client & { email: string };
let owner: Browser;
let list: string;

beforeAll(async () => {
  service = await startService();
  store = await service.newStore();
  owner = await Browser.signedIn(service, store.email);
  list = `/app/stores/${store.accountId}/posters`;
});
afterAll(() => service.stop());

const FIELDS = {
  title: 'Join <us>',
  paper_size: 'table_tent',
  contact_collection_mode: 'email_and_phone',
  require_email: 'yes',
};
const readPoster = async (id: number) =>
  (await store.get<PosterJson>(`${store.store}/posters/${id}`)).body;

describe('the pages of posters', () => {
  it('lead a store without cards to the designer', async () => {
    const { text } = await owner.get(list);
    expect(text).toContain('Please design a card first');
    expect(text).toContain(`/app/stores/${store.accountId}/cards/new`);
  });

  it('make a poster once, however often the form is sent', async () => {
    const { card_id } = await newPoster(store);
    const fields = { ...FIELDS, card_id: String(card_id), form_key: 'one-key' };
    const first = await owner.submit(`${list}/new`, list, fields);
    const again = await owner.submit(`${list}/new`, list, fields);
    expect([first.status, again.location]).toEqual([303, first.location]);
    const id = Number(/(\d+)\?/.exec(first.location ?? '')?.[1]);
    expect(await readPoster(id)).toMatchObject({
      card_id,
      title: 'Join <us>',
      paper_size: 'table_tent',
      require_email: true,
      require_phone: false,
    });
    const picture = await owner.get(`${list}/${id}/picture`);
    expect([picture.status, picture.text.slice(0, 4)]).toEqual([200, '<svg']);
    const form = (await owner.get(`${list}/${id}`)).text;
    for (const design of ['rewards', 'code', 'dark']) {
      expect(form).toContain(`src="${list}/${id}/picture?design=${design}"`);
      expect((await owner.get(`${list}/${id}/picture?design=${design}`)).status).toBe(200);
    }
    expect((await owner.get(`${list}/${id}/picture?design=light`)).status).toBe(404);
  });

  it('name the reward of a full card as long as nobody writes a headline', async () => {
    const { card_id } = await newPoster(store);
    for (const [name, stamps_required] of [
      ['Free biscuit', 4],
      ['Free coffee', 10],
    ]) {
      const reward = { card_id, name, stamps_required };
      expect((await store.post(`${store.store}/rewards`, { reward })).status).toBe(201);
    }
    const fields = { ...FIELDS, title: ' ', card_id: String(card_id), form_key: 'no-headline' };
    const { location } = await owner.submit(`${list}/new`, list, fields);
    const id = Number(/(\d+)\?/.exec(location ?? '')?.[1]);
    const { title, slug } = await readPoster(id).then((poster) => ({
      title: poster.title,
      slug: new URL(poster.display_url).pathname,
    }));
    expect(title).toBe('Free coffee after 10 stamps');
    // Once on the poster, and the other reward below it.
    const { text } = await owner.get(slug);
    const [, spoken = ''] = /<figure [^>]*aria-label="([^"]*)"/.exec(text) ?? [];
    expect(spoken).toContain('Free biscuit for 4 stamps');
    expect(spoken).not.toContain('Free coffee for 10 stamps');
  });

  it('draw a poster before it is made, and none of another store’s card', async () => {
    const { card_id } = await newPoster(store);
    const { text } = await owner.get(`${list}/new?card=${card_id}`);
    const [, path = ''] = /id="poster-picture" src="([^"]+)"/.exec(text) ?? [];
    const draw = async (query: string) => owner.get(`${list}/new/picture?${query}`);
    const first = await owner.get(path.replaceAll('&amp;', '&'));
    expect([first.status, first.text.slice(0, 4)]).toEqual([200, '<svg']);
    const titled = await draw(`card_id=${card_id}&title=Join&primary_color=%23123456`);
    expect(titled.text).toContain('fill="#123456"');
    const wrong = await draw(`card_id=${card_id}&paper_size=a9&primary_color=red`);
    expect([wrong.status, wrong.text.includes('red')]).toEqual([200, false]);
    const other = await service.newStore();
    const foreign = await newPoster(other);
    expect((await draw(`card_id=${foreign.card_id}`)).status).toBe(404);
    expect((await draw('')).status).toBe(404);
  });

  it('change a poster, pause it and open it again', async () => {
    const { id } = await newPoster(store);
    const page = `${list}/${id}`;
    const changes = { ...FIELDS, contact_collection_mode: 'phone_only', primary_color: '#123456' };
    expect((await owner.submit(page, page, changes)).status).toBe(303);
    expect(await readPoster(id)).toMatchObject({
      primary_color: '#123456',
      require_email: false,
      require_phone: true,
    });
    await owner.submit(page, `${page}/pause`);
    expect(await readPoster(id)).toMatchObject({ active: false });
    // Saving does not open it again.
    await owner.submit(page, page, changes);
    expect(await readPoster(id)).toMatchObject({ active: false });
    await owner.submit(page, `${page}/resume`);
    expect(await readPoster(id)).toMatchObject({ active: true });
  });

  it('show a form with errors again, in words for people', async () => {
    const { id } = await newPoster(store);
    const page = `${list}/${id}`;
    const wrong = { ...FIELDS, title: 'x'.repeat(256), minimum_age: '18', paper_size: 'a9' };
    const { status, text } = await owner.submit(page, page, wrong);
    expect(status).toBe(422);
    expect(text).toContain('href="#field-title"');
    expect(text).toContain('Please use at most 255 characters.');
    expect(text).not.toMatch(/must (be|have)/);
    const unknown = { ...FIELDS, card_id: '999999' };
    expect((await owner.submit(`${list}/new`, list, unknown)).status).toBe(422);
  });

  it('mark the field that a rule of the poster refuses', async () => {
    const { id } = await newPoster(store);
    const page = `${list}/${id}`;
    const wrong = { ...FIELDS, minimum_age: '18' };
    const { status, text } = await owner.submit(page, page, wrong);
    expect(status).toBe(422);
    expect(text).toContain('href="#field-minimum_age"');
    expect(text).toContain('Please ask for the birthday as well, or leave the age blank.');
  });

  it('count the customers who signed up there, and those who scanned its code', async () => {
    const poster = await newPoster(store);
    const page = `${list}/${poster.id}`;
    expect((await owner.get(page)).text).toContain('No sign-ups yet');
    for (const [index, query] of ['', '?src=qr', '?src=qr'].entries()) {
      const form = await SignupForm.open(service.baseUrl, 'https://cards.example', poster, query);
      const { status } = await form.send({ first_name: 'Ada', email: `ada${index}@example.com` });
      expect(status).toBe(303);
    }
    // Whoever is a customer already is not counted again.
    const form = await SignupForm.open(service.baseUrl, 'https://cards.example', poster, '?src=qr');
    await form.send({ first_name: 'Ada', email: 'ada0@example.com' });
    expect((await owner.get(page)).text).toContain('3 sign-ups, 2 of them by scanning');
    expect((await owner.get(list)).text).toContain('3 sign-ups, 2 of them by scanning');
  });

  it('say that sign-up is closed because of the card, never that it is open', async () => {
    const { id, card_id } = await newPoster(store);
    const card = `${store.store}/cards/${card_id}`;
    const page = `${list}/${id}`;
    expect((await owner.get(page)).text).toContain('<span class="tag good">Open</span>');
    await store.send('PATCH', card, { card: { expires_at: '2020-01-01' } });
    for (const path of [page, list, `${page}?done=resumed`]) {
      const { text } = await owner.get(path);
      expect(text).toContain('Closed: the card has expired');
      expect(text).not.toContain('Sign-ups are open');
    }
    await store.post(`${card}/archive`, {});
    expect((await owner.get(page)).text).toContain('Closed: the card is archived');
  });

  it('remove a poster after a question', async () => {
    const { id } = await newPoster(store);
    const page = `${list}/${id}`;
    expect((await owner.get(`${page}/remove`)).text).toContain('Remove this poster?');
    expect((await owner.submit(page, `${page}/remove`)).location).toBe(`${list}?done=removed`);
    expect((await owner.get(page)).status).toBe(404);
  });

  it('respond 404 to users of other stores', async () => {
    const { id } = await newPoster(store);
    const otherStore = await service.newStore();
    const stranger = await Browser.signedIn(service, otherStore.email);
    expect((await stranger.get(`${list}/${id}`)).status).toBe(404);
    const theirs = `/app/stores/${otherStore.accountId}/posters`;
    for (const path of [`${theirs}/${id}`, `${theirs}/${id}/picture`]) {
      expect((await stranger.get(path)).status).toBe(404);
    }
    for (const action of ['', '/pause', '/resume', '/remove']) {
      const sent = await stranger.submit(`${theirs}/new`, `${theirs}/${id}${action}`, FIELDS);
      expect(sent.status).toBe(404);
    }
  });
});
