import { describe, expect, it } from '@jest/globals';
import { expectRefused, useSharedService } from '../support/http/contract.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';

const service = useSharedService();
const store = service.useStore();

const nest = (levels: number) => '['.repeat(levels) + ']'.repeat(levels);

describe('hostile input', () => {
  it('in names and searches is handled as ordinary text', async () => {
    for (const text of [
      "'; drop table es.events; --",
      "' or 1=1 --",
      '${7*7}',
      '{{7*7}}',
      '<script>alert(1)</script>',
      '../../etc/passwd',
      'gnp.\u202eexe',
      '%00',
      '\\u0000',
    ]) {
      const response = await store.post<{ name: string }>(`${store.store}/cards`, {
        card: { name: text },
      });
      expect([response.status, response.body.name]).toEqual([201, text]);
      const search = await store.get(`${store.store}/customers?search=${encodeURIComponent(text)}`);
      expect(search.status).toBe(200);
    }
  });

  it.each([50_000, 400_000])('of %i levels of nesting is refused with 422', async (levels) => {
    const response = await store.post(
      `${store.store}/customers`,
      `{"customer":{"first_name":"f","email":"deep@x.de","metadata":{"a":${nest(levels)}}}}`,
    );
    expectRefused(response, 'metadata');
  });

  it('of 100,000 levels is refused with 422, and its Idempotency-Key stays usable', async () => {
    const { path } = await enrol(store);
    const deep = `{"x":${nest(100_000)}}`;
    const key = { 'idempotency-key': 'deep' };
    expectRefused(await store.send('POST', `${path}/stamp`, deep, key), 'base');
    expect((await store.send('POST', `${path}/stamp`, { stamps: 1 }, key)).status).toBe(200);
  });

  it('with 400,000 errors gets a response of less than 1,000 characters', async () => {
    const response = await store.post(`${store.store}/customers`, {
      customer: {
        first_name: 'f',
        email: 'many@x.de',
        external_references: Array(400_000).fill(1),
      },
    });
    expectRefused(response, 'external_references');
    expect(response.text.length).toBeLessThan(1000);
  });

  it('in paths never causes a 5xx', async () => {
    const paths = [
      '/join/a%00',
      '/posters/a%00',
      '/passes/a%00',
      '/app/invitations/a%00',
      '/wallet/apple/v1/devices/a%00/registrations/pass.a%00',
      `${store.store}/customer_cards/by_code/a%00`,
    ];
    for (const path of paths) {
      expect([path, (await store.get(path)).status < 500]).toEqual([path, true]);
    }
  });

  it('in queries gets 200 or 422', async () => {
    for (const query of [
      'page=0',
      'page=x',
      'page=99999999999999999999',
      'items=x',
      'search=%00',
      'search=%ED%A0%80',
      'source=a',
      'external_id=b',
    ]) {
      const { status } = await store.get(`${store.store}/customers?${query}`);
      expect([query, [200, 422].includes(status)]).toEqual([query, true]);
    }
    const response = await store.get(`${store.store}/customers?search=a&search=b&page=1&page=2`);
    expect(response.status).toBe(200);
  });
});
