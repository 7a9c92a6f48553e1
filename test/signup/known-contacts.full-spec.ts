import { expect, it } from '@jest/globals';
import type { CardJson } from '#loyalty/cards/card.dto.js';
import type { CustomerJson } from '#loyalty/customers/customer.dto.js';
import type { PosterJson } from '#loyalty/posters/poster.dto.js';
import { newPoster, SignupForm, type Sent } from '../support/browser/signup.js';
import { useService } from '../support/http/contract.js';

const ORIGIN = 'https://cards.example';
const service = useService({ PUBLIC_URL: ORIGIN, TRUST_PROXY_HOPS: '1' });
const store = service.useStore({ country: 'DE' });

let addresses = 0;
let people = 0;

/** Who has the contacts that a script enters. */
const WORLDS = ['nobody', 'a customer with the card', 'a customer without the card'] as const;
type World = (typeof WORLDS)[number];

type Contacts = { email: string; phone: string };
type Fields = Partial<Contacts & { last_name: string }>;

/** Plays what a stranger does, and writes down all that they can see. What is random is numbered in order. */
class Stranger {
  readonly transcript: unknown[] = [];
  readonly me: Contacts;
  private readonly numbers = new Map<string, string>();
  private readonly cookies = new Map<string, string>();
  private readonly forms = new Map<string, SignupForm>();
  private customerId: number | null = null;

  private constructor(readonly poster: PosterJson) {
    const id = ++people;
    const digits = String(id).padStart(4, '0');
    this.me = { email: `guest.${id}@gmail.com`, phone: `+4915112${digits}9` };
  }

  static async in(world: World): Promise<Stranger> {
    const poster = await newPoster(store, { require_email: false }, { stamps_required: 8 });
    const stranger = new Stranger(poster);
    if (world !== 'nobody') {
      const { body } = await store.post<CustomerJson>(`${store.store}/customers`, {
        customer: { first_name: 'Ada', ...stranger.me },
        ...(world === 'a customer with the card' && { card_id: poster.card_id }),
      });
      stranger.customerId = body.id;
    }
    return stranger;
  }

  /** Sends a form from a browser. @param again the name of a form that was opened already */
  async send(browser: string, fields: Fields, again?: string): Promise<string> {
    const { baseUrl } = service.running;
    const form =
      (again !== undefined && this.forms.get(again)) ||
      (await SignupForm.open(baseUrl, ORIGIN, this.poster, '?new=1'));
    if (again !== undefined) this.forms.set(again, form);
    const sent = await form.send(
      { first_name: 'Grace', ...fields },
      {
        cookie: this.cookies.get(browser) ?? '',
        'x-forwarded-for': `2001:db8:${(++addresses).toString(16)}::1`,
      },
    );
    this.note('form', sent);
    this.keepCookie(browser, sent.headers);
    const path = sent.location.replace(ORIGIN, '');
    await this.open(browser, path);
    return path;
  }

  async open(browser: string, path: string): Promise<void> {
    const response = await fetch(service.running.baseUrl + path, {
      redirect: 'manual',
      headers: { cookie: this.cookies.get(browser) ?? '' },
    });
    const { status, headers } = response;
    const location = headers.get('location') ?? '';
    this.note('page', { status, headers, text: await response.text(), location });
    this.keepCookie(browser, headers);
  }

  openPoster(browser: string): Promise<void> {
    return this.open(browser, new URL(this.poster.signup_url).pathname);
  }

  changeCookie(browser: string, change: (cookie: string) => string): void {
    this.cookies.set(browser, change(this.cookies.get(browser) ?? ''));
  }

  async setArchived(isArchived: boolean): Promise<void> {
    const path = `${store.store}/cards/${this.poster.card_id}`;
    const action = isArchived ? 'archive' : 'unarchive';
    assertStatus(200, await store.post<CardJson>(`${path}/${action}`));
  }

  async eraseCustomer(): Promise<void> {
    const { body } = await store.get<{ customers: CustomerJson[] }>(
      `${store.store}/customers?search=${encodeURIComponent(this.me.email)}`,
    );
    const id = this.customerId ?? body.customers[0]?.id;
    assertStatus(204, await store.post(`${store.store}/customers/${id}/erase`));
  }

  /** Confirms at the counter that whoever shows the card is its customer. */
  async confirm(path: string): Promise<void> {
    const page = await (await fetch(service.running.baseUrl + path)).text();
    const [, code = ''] = /<span class="code">(\w{8})</.exec(page) ?? [];
    const by = `${store.store}/customer_cards/by_code/${code}`;
    assertStatus(200, await store.post(`${by}/confirm`));
  }

  private keepCookie(browser: string, headers: Headers): void {
    const [cookie] = (headers.get('set-cookie') ?? '').split(';');
    if (cookie !== undefined && cookie !== '') this.cookies.set(browser, cookie);
  }

  private note(kind: string, { status, headers, text, location }: Sent): void {
    const entries = [...headers].filter(
      ([name]) => !['date', 'x-request-id', 'content-length', 'etag'].includes(name),
    );
    const seen = { kind, status, headers: entries.sort(), location, text: withoutCode(text) };
    this.transcript.push(
      JSON.parse(
        JSON.stringify(seen)
          .replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}/g, (uuid) => this.toNumber('uuid', uuid))
          .replaceAll(/(?<=\.)[A-Za-z0-9_-]{22}(?![\w-])/g, (hash) => this.toNumber('hash', hash))
          .replaceAll(/nonce-[A-Za-z0-9+/=_-]+|(?<=nonce\\" value=\\")[\w-]{22}/g, 'NONCE')
          .replaceAll(/img\/strip\/[0-9a-f]{32}/g, 'PICTURE')
          .replaceAll(new RegExp(`\\b${this.poster.card_id}(?=\\.uuid)`, 'g'), 'CARD')
          .replaceAll(new URL(this.poster.signup_url).pathname, 'POSTER')
          .replaceAll(this.me.email, 'EMAIL')
          .replaceAll(this.me.phone, 'PHONE'),
      ),
    );
  }

  private toNumber(kind: string, value: string): string {
    const number = this.numbers.get(value) ?? `${kind}-${this.numbers.size + 1}`;
    this.numbers.set(value, number);
    return number;
  }
}

function assertStatus(expected: number, { status }: { status: number }): void {
  if (status !== expected) throw new Error(`the status is ${status} instead of ${expected}`);
}

/** Leaves out what no two cards have in common: the code, its drawing, the page's tag and minute. */
function withoutCode(text: string): string {
  return text
    .replaceAll(/<path[^>]*>/g, '')
    .replaceAll(/viewBox="[^"]*"/g, '')
    .replaceAll(/data-(tag|since)="\d+"/g, '')
    .replaceAll(/(?<=card as of )[^<]+ [AP]M/g, 'NOW')
    .replaceAll(/\b[2-9A-HJ-NP-Z]{8}\b/g, 'CODE');
}

const SCRIPTS: Record<string, (stranger: Stranger) => Promise<unknown>> = {
  'sends the address twice': async (s) => {
    await s.send('a', { email: s.me.email });
    await s.send('a', { email: s.me.email });
  },
  'sends the number three times': async (s) => {
    for (let i = 0; i < 3; i++) await s.send('a', { phone: s.me.phone });
  },
  'spells the address in another way': async (s) => {
    await s.send('a', { email: s.me.email });
    await s.send('a', { email: s.me.email.toUpperCase() });
    await s.send('a', { email: s.me.email.replace('.', '') });
    await s.send('b', { email: s.me.email.toUpperCase() });
  },
  'writes the number in another way': async (s) => {
    await s.send('a', { phone: s.me.phone });
    await s.send('a', { phone: s.me.phone.replace('+49', '0') });
    await s.send('a', { phone: s.me.phone.replace('+49', '0049 ') });
  },
  'uses several browsers': async (s) => {
    await s.send('a', { email: s.me.email });
    await s.send('b', { email: s.me.email });
    await s.send('a', { email: s.me.email });
    await s.send('b', { email: s.me.email });
    await s.send('c', { phone: s.me.phone });
  },
  'forgets the cookie': async (s) => {
    await s.send('a', { email: s.me.email });
    s.changeCookie('a', () => '');
    await s.send('a', { email: s.me.email });
  },
  'cuts the hashes off the cookie': async (s) => {
    await s.send('a', { email: s.me.email });
    s.changeCookie('a', (cookie) => cookie.split('.').slice(0, 2).join('.'));
    await s.openPoster('a');
    await s.send('a', { email: s.me.email });
  },
  'swaps the cards of two browsers': async (s) => {
    const first = await s.send('a', { email: s.me.email });
    const second = await s.send('b', { email: s.me.email });
    await s.open('b', first);
    await s.send('b', { email: s.me.email });
    await s.open('a', second);
    await s.openPoster('a');
    await s.send('a', { email: s.me.email });
  },
  'signs several people up in one browser': async (s) => {
    await s.send('a', { email: s.me.email });
    await s.send('a', { email: `friend.of.${s.me.email}` });
    await s.send('a', { email: s.me.email });
    await s.send('a', { email: `friend.of.${s.me.email}` });
  },
  'adds a number, and leaves the address out': async (s) => {
    await s.send('a', { email: s.me.email });
    await s.send('a', { email: s.me.email, phone: s.me.phone });
    await s.send('a', { phone: s.me.phone });
  },
  'adds an address of their own to the number': async (s) => {
    await s.send('a', { email: `own.${s.me.email}`, phone: s.me.phone });
    await s.send('b', { phone: s.me.phone });
    await s.send('c', { email: `own.${s.me.email}` });
    await s.send('d', { email: `other.${s.me.email}`, phone: s.me.phone });
  },
  'adds a number of their own to the address': async (s) => {
    await s.send('a', { email: s.me.email, phone: `${s.me.phone}0` });
    await s.send('b', { email: s.me.email });
    await s.send('c', { phone: `${s.me.phone}0` });
  },
  'sends one form again, and once more with another name': async (s) => {
    await s.send('a', { email: s.me.email }, 'form');
    await s.send('b', { email: s.me.email }, 'form');
    await s.send('a', { email: s.me.email }, 'form');
    await s.send('b', { email: s.me.email, last_name: 'Hopper' }, 'form');
  },
  'opens the poster and its card in between': async (s) => {
    const card = await s.send('a', { email: s.me.email });
    await s.openPoster('a');
    await s.open('a', card);
    await s.send('a', { email: s.me.email });
    await s.openPoster('a');
  },
  'comes back after the card was archived for a while': async (s) => {
    await s.send('a', { email: s.me.email });
    await s.setArchived(true);
    await s.openPoster('a');
    await s.setArchived(false);
    await s.openPoster('a');
    await s.send('a', { email: s.me.email });
  },
  'comes back after the customer was erased': async (s) => {
    await s.send('a', { email: s.me.email }, 'form');
    await s.eraseCustomer();
    await s.openPoster('a');
    await s.send('a', { email: s.me.email }, 'form');
    await s.send('a', { email: s.me.email }, 'form');
    await s.send('a', { email: s.me.email });
    await s.send('a', { email: s.me.email });
  },
};

async function play(script: (stranger: Stranger) => Promise<unknown>): Promise<unknown[][]> {
  return Promise.all(
    WORLDS.map(async (world) => {
      const stranger = await Stranger.in(world);
      await script(stranger);
      return stranger.transcript;
    }),
  );
}

it('JOIN-44 Whatever forms a browser sends again, status, headers, cookies, links and pages are the same for contacts of nobody and of a customer', async () => {
  for (const [title, script] of Object.entries(SCRIPTS)) {
    const [nobody, ...customers] = await play(script);
    for (const transcript of customers) {
      expect({ title, transcript }).toEqual({ title, transcript: nobody });
    }
  }
  // Whom staff have confirmed is led to the customer's own card, by the link that the browser has.
  for (const world of WORLDS) {
    const stranger = await Stranger.in(world);
    const card = await stranger.send('a', { email: stranger.me.email });
    await stranger.confirm(card);
    const second = await stranger.send('a', { email: stranger.me.email });
    expect([world, second]).toEqual([world, card.split('?')[0]]);
  }
});
