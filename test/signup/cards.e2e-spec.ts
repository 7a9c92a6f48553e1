import { describe, expect, it } from '@jest/globals';
import type { CustomerListJson } from '#loyalty/customers/customer-list.dto.js';
import type { PosterJson } from '#loyalty/posters/poster.dto.js';
import { newPoster, SignupForm } from '../support/browser/signup.js';
import { useService } from '../support/http/contract.js';

const ORIGIN = 'https://cards.example';
const service = useService({ PUBLIC_URL: ORIGIN });
const store = service.useStore();

const getSignupPath = ({ signup_url: url }: PosterJson) => new URL(url).pathname;

async function get(path: string, cookie = '') {
  const response = await fetch(service.running.baseUrl + path, {
    headers: { cookie },
    redirect: 'manual',
  });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

/** Acts as a browser, which keeps the cookie of the page. */
class Phone {
  cookie = '';

  async signUp(poster: PosterJson, email: string): Promise<string> {
    const form = await SignupForm.open(service.running.baseUrl, ORIGIN, poster, '?new=1');
    const sent = await form.send({ first_name: 'Ada', email }, { cookie: this.cookie });
    if (sent.status !== 303) throw new Error(`the form was refused with ${sent.status}`);
    [this.cookie = ''] = (sent.headers.get('set-cookie') ?? this.cookie).split(';');
    return new URL(sent.location, ORIGIN).pathname;
  }
}

const findOwnPage = async (email: string) => {
  const { body } = await store.get<CustomerListJson>(
    `${store.store}/customers?search=${encodeURIComponent(email)}`,
  );
  return `/passes/${body.customers[0]?.customer_cards[0]?.uuid}`;
};

describe('what the page shows', () => {
  it('JOIN-39 The signup page shows the card as it will be, the first rewards with their stamps, and the stamps to begin with', async () => {
    const poster = await newPoster(store, {}, { name: 'Tea club', initial_stamps: 2 });
    for (const [name, stamps_required, active] of [
      ['Scone', 4, true],
      ['Secret', 5, false],
      ['Pot of tea', 10, true],
    ] as const) {
      await store.post(`${store.store}/rewards`, {
        reward: { card_id: poster.card_id, name, stamps_required, active },
      });
    }
    const { text } = await get(getSignupPath(poster));
    expect(text).toMatch(
      /<img src="\/img\/strip\/[0-9a-f]{32}\/2@2x\.png"[^>]* alt="2 of 10 stamps">/,
    );
    const read = text.replace(/<[^>]*>/g, ' ').replace(/\s+/g, ' ');
    expect(read).toContain(
      'Get the Tea club on your phone – no app needed. Scone for 4 stamps Pot of tea for 10 stamps You start with 2 stamps.',
    );
    expect(read).not.toContain('Secret');
    expect(read).toContain('Responsible for these details: Corner Café.');
  });

  it('JOIN-40 The birthday is asked for in three numbers, in the order of the language', async () => {
    const order = async (locale: string) => {
      const own = await service.newStore({ locale });
      const poster = await newPoster(own, { require_birthday: true });
      const { text } = await get(getSignupPath(poster));
      return [...text.matchAll(/name="birthday_(\w+)"[^>]* inputmode="numeric"/g)].map(
        ([, part]) => part,
      );
    };
    expect(await order('de')).toEqual(['day', 'month', 'year']);
    expect(await order('en-US')).toEqual(['month', 'day', 'year']);
    const poster = await newPoster(store, { require_birthday: true });
    const form = await SignupForm.open(service.running.baseUrl, ORIGIN, poster);
    const birthday = { birthday_day: '٣', birthday_month: '5', birthday_year: '1990' };
    const email = 'born@mail.example';
    const { status } = await form.send({ first_name: 'Ada', email, ...birthday });
    expect(status).toBe(303);
    const { body } = await store.get<CustomerListJson>(`${store.store}/customers?search=${email}`);
    expect(body.customers[0]?.birthday).toBe('1990-05-03');
  });

  it('JOIN-41 A link to the signup page shows a title, a description and a picture in messages', async () => {
    const { text } = await get(getSignupPath(await newPoster(store)));
    expect(text).toContain('og:title" content="Ten stamps, one coffee · Corner Café"');
    expect(text).toContain('og:description" content="Get the Coffee club on your phone');
    expect(text).toMatch(/og:image" content="https:\/\/cards\.example\/img\/strip\//);
  });
});

describe('a browser that has signed up before', () => {
  it('JOIN-42 A browser that has signed up for the card is led to that card, and may sign up somebody else', async () => {
    const poster = await newPoster(store);
    const phone = new Phone();
    const page = await phone.signUp(poster, 'again@mail.example');
    const { status, text } = await get(getSignupPath(poster), phone.cookie);
    expect(status).toBe(200);
    expect(text).toContain('You already have this card');
    expect(text).toContain(`href="${page}"`);
    expect(text).toContain(`href="${getSignupPath(poster)}?new=1"`);
    expect((await get(`${getSignupPath(poster)}?new=1`, phone.cookie)).text).toContain('<form');
    expect((await get(getSignupPath(await newPoster(store)), phone.cookie)).text).toContain(
      '<form',
    );
    for (const cookie of ['__Host-cards=x', '__Host-cards=1.2~~3.4', phone.cookie.slice(0, 30)]) {
      expect((await get(getSignupPath(poster), cookie)).text).toContain('<form');
    }
    await phone.signUp(poster, 'friend@mail.example');
    // A page that is opened later, such as from a message, takes the place of the one before.
    const opened = await get(page, phone.cookie);
    const [cookie = ''] = (opened.headers.get('set-cookie') ?? '').split(';');
    expect((await get(getSignupPath(poster), cookie)).text).toContain(`href="${page}"`);
    const { body } = await store.get<CustomerListJson>(
      `${store.store}/customers?search=again@mail.example`,
    );
    await store.post(`${store.store}/customers/${body.customers[0]?.id}/erase`);
    expect((await get(getSignupPath(poster), cookie)).text).toContain('<form');
  });

  it('JOIN-43 A browser that sends a contact again is led back to the card that it got for it, at once and without a further message', async () => {
    const poster = await newPoster(store);
    const phone = new Phone();
    const email = 'same@mail.example';
    const page = await phone.signUp(poster, email);
    expect(page).toBe(await findOwnPage(email));
    expect(await phone.signUp(poster, email)).toBe(page);
    const stranger = new Phone();
    const decoy = await stranger.signUp(poster, email);
    expect(decoy).not.toBe(page);
    expect(await stranger.signUp(poster, email)).not.toBe(page);
    const otherPhone = new Phone();
    otherPhone.cookie = phone.cookie;
    expect(await otherPhone.signUp(poster, 'another@mail.example')).not.toBe(page);
    otherPhone.cookie = phone.cookie;
    expect(await otherPhone.signUp(await newPoster(store), email)).not.toBe(page);
  });
});
