import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { Browser } from '../support/browser/browser.js';
import { startService, type Client, type LocalService } from '../support/services/service.js';

let service: LocalService;
let store: Client & { email: string };
let owner: Browser;

beforeAll(async () => {
  service = await startService();
  store = await service.newStore();
  owner = await Browser.signedIn(service, store.email);
});
afterAll(() => service?.stop());

const readBreadcrumb = (text: string) =>
  /<nav class="breadcrumb"[^>]*>\s*<a href="([^"]*)"/.exec(text)?.[1];

it.each([
  ['customers/new', 'customers', 'customers'],
  ['locations/new', 'locations', 'locations'],
  ['posters/new', 'posters', 'posters'],
  ['webhooks/new', 'webhooks', 'webhooks'],
  ['users', 'users/invitations', ''],
  ['brand', 'brand/contact', ''],
])('the breadcrumb of %s stays after its form is rejected', async (page, action, above) => {
  const base = `/app/stores/${store.accountId}`;
  const path = above === '' ? base : `${base}/${above}`;
  expect(readBreadcrumb((await owner.get(`${base}/${page}`)).text)).toBe(path);
  const rejected = await owner.post(`${base}/${action}`, { email: 'x', website: 'x', title: '' });
  expect([rejected.status, readBreadcrumb(rejected.text)]).toEqual([422, path]);
});
