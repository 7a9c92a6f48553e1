import { afterAll, beforeAll, expect, it } from '@jest/globals';
import type { CardJson } from '#loyalty/cards/card.dto.js';
import type { PosterJson } from '#loyalty/posters/poster.dto.js';
import { Browser } from '../support/browser/browser.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import { startService, type Client, type Service } from '../support/services/service.js';

/** Tests that no page offers a link or code to somebody else's phone while it opens on this computer only. */

const LOCAL_URL = 'http://localhost:3000';
const PUBLIC_URL = 'https://cards.example';
const PASSWORD = 'correct horse';
const LOCAL_ONLY = 'open on this computer only';

const services = new Map<string, Service>();

beforeAll(async () => {
  for (const url of [LOCAL_URL, PUBLIC_URL]) {
    services.set(url, await startService({ PUBLIC_URL: url }));
  }
});
afterAll(() => Promise.all([...services.values()].map((service) => service.stop())));

/** Collects the pages with links or codes for others, by what they are. */
async function readPages(url: string): Promise<Record<string, string>> {
  const service = services.get(url);
  if (!service) throw new Error(`no service at ${url}`);
  const store: Client & { email: string } = await service.newStore();
  const browser = new Browser(service, url);
  await browser.signIn(store.email, PASSWORD);
  const base = `/app/stores/${store.accountId}`;
  const read = async (path: string) => (await browser.get(path)).text;
  const overview = await read(base);
  const { body: card } = await store.post<CardJson>(`${store.store}/cards`, {
    card: { name: 'Coffee' },
  });
  const { customer } = await enrol(store, { on: card });
  const { body: poster } = await store.post<PosterJson>(`${store.store}/posters`, {
    poster: { card_id: card.id },
  });
  const counter = `/counter/${store.accountId}`;
  await browser.get(`${counter}/find?q=Grace`);
  const guest = {
    q: 'Grace',
    name: 'Grace',
    contact: 'grace@example.com',
    card_id: String(card.id),
  };
  const { location } = await browser.post(`${counter}/enrol`, guest);
  const invitation = { email: 'nina@example.com', role: 'staff', current_password: PASSWORD };
  await browser.get(`${base}/users`);
  const invited = await browser.post(`${base}/users/invitations`, invitation);
  return {
    overview,
    invitation: invited.text,
    'counter after enrolling': await read(location ?? ''),
    customer: await read(`${base}/customers/${customer.id}`),
    'new customer': await read(`${base}/customers/new`),
    designer: await read(`${base}/cards/${card.id}`),
    posters: await read(`${base}/posters`),
    poster: await read(`${base}/posters/${poster.id}`),
  };
}

it.each([
  [LOCAL_URL, true],
  [PUBLIC_URL, false],
])(
  'pages with links for others at %s say that they are for one computer: %s',
  async (url, isSaid) => {
    const pages = Object.entries(await readPages(url));
    expect(pages.map(([name, text]) => [name, text.includes(LOCAL_ONLY)])).toEqual(
      pages.map(([name]) => [name, isSaid]),
    );
  },
);
