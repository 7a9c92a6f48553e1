import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Browser } from '../support/browser/browser.js';
import { newPoster } from '../support/browser/signup.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';
import { startService, type Client, type LocalService } from '../support/services/service.js';

/** Tests what every page says to the machines between the service and its reader, such as a content delivery network. */

let service: LocalService;
let store: Client & { email: string };
let owner: Browser;

beforeAll(async () => {
  service = await startService();
  store = await service.newStore();
  owner = await Browser.signedIn(service, store.email);
});
afterAll(() => service?.stop());

const readCaching = ({ headers }: { headers: Headers }) =>
  (headers.get('cache-control') ?? '').split(', ');

describe('intermediaries', () => {
  it('may change no page, whoever reads it and whatever its status is', async () => {
    const { page: card, customer, customerCard } = await enrol(store);
    const poster = await newPoster(store);
    const stores = `/app/stores/${store.accountId}`;
    const forAnybody = ['/', '/app/sign-in', '/docs', '/docs/reference', card, '/nothing'];
    const visitor = new Browser(service);
    for (const path of [
      ...forAnybody,
      new URL(poster.signup_url).pathname,
      '/passes/nothing',
      '/join/nothing',
    ]) {
      const response = await visitor.get(path);
      expect([path, response.headers.get('content-type')]).toEqual([
        path,
        'text/html; charset=utf-8',
      ]);
      expect([path, readCaching(response)]).toEqual([
        path,
        expect.arrayContaining(['no-transform']),
      ]);
    }
    for (const path of [
      '/app',
      '/app/account',
      stores,
      `${stores}/customers`,
      `${stores}/customers/${customer.id}`,
      `${stores}/nothing`,
      `/counter/${store.accountId}`,
      `/counter/${store.accountId}/offline`,
      `/counter/${store.accountId}/cards/${customerCard.id}`,
    ]) {
      const response = await owner.get(path);
      expect([path, response.headers.get('content-type')]).toEqual([
        path,
        'text/html; charset=utf-8',
      ]);
      expect([path, readCaching(response)]).toEqual([path, ['no-store', 'no-transform']]);
    }
    const rejected = await visitor.post('/app/sign-in', { email: 'nobody', password: 'wrong' });
    expect([rejected.status, readCaching(rejected)]).toEqual([422, ['no-store', 'no-transform']]);
  });

  it('may keep a page, and renew it, as one that they do not change', async () => {
    const visitor = new Browser(service);
    const { headers } = await visitor.get('/docs');
    const again = await visitor.get('/docs', { 'if-none-match': headers.get('etag') ?? '' });
    expect([again.status, readCaching(again)]).toEqual([304, readCaching({ headers })]);
  });

  it('learn about other files what they learned before', async () => {
    const { text } = await owner.get('/app');
    const [, style = ''] = /<link rel="stylesheet" href="([^"]+)"/.exec(text) ?? [];
    expect(readCaching(await owner.get(style))).toEqual([
      'public',
      'max-age=31536000',
      'immutable',
    ]);
    const { headers } = await store.get(`${store.store}/customers`);
    expect(readCaching({ headers })).toEqual(['no-store']);
  });
});
