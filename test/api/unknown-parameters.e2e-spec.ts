import { beforeAll, describe, expect, it } from '@jest/globals';
import type { CreatedCustomerJson } from '#loyalty/customers/customer.dto.js';
import { expectRefused, useSharedService, type Failure } from '../support/http/contract.js';
import type { ApiResponse } from '../support/services/service.js';
import { enrol } from '../support/fixtures/enrolled-customer.js';

const service = useSharedService();
const store = service.useStore();
let customers: string;
let path: string;

beforeAll(async () => {
  customers = `${store.store}/customers`;
  ({ path } = await enrol(store));
});

const STRICT = { prefer: 'handling=strict' };
const unknownIn = ({ headers }: ApiResponse<unknown>) => headers.get('x-unknown-parameters');
const appliedTo = ({ headers }: ApiResponse<unknown>) => headers.get('preference-applied');
const stamps = () => store.readBalance(path);

let people = 0;
const someone = () => ({ first_name: 'Anna', email: `strict${people++}@example.com` });

describe('unknown parameters and fields', () => {
  it('CONV-41 Query parameters and body fields that the operation does not take are named in `X-Unknown-Parameters`', async () => {
    const misspelt = { customer: { ...someone(), frist_name: 'Anna', id: 7 }, card: 1 };
    const response = await store.post<CreatedCustomerJson>(`${customers}?limt=3`, misspelt);
    expect([response.status, unknownIn(response)]).toEqual([
      201,
      'card, customer.frist_name, customer.id, limt',
    ]);
    const bare = await store.post(customers, { ...someone(), frist_name: 'Anna' });
    expect([bare.status, unknownIn(bare)]).toEqual([201, 'frist_name']);
    const stamped = await store.post(`${path}/stamp?dry=1`, { stamps: 1, refernce: 'R-1' });
    expect([stamped.status, unknownIn(stamped)]).toEqual([200, 'refernce, dry']);
    const listed = await store.get(`${customers}?serach=anna&items=1`);
    expect([listed.status, unknownIn(listed)]).toEqual([200, 'serach']);
  });

  it('CONV-42 Unknown fields in the objects of a list are named by their place from 0: `customer.external_references.0.sorce`', async () => {
    const references = [
      { source: 'till', external_id: `${people}`, sorce: 'till', metadata: { anything: 1 } },
      { source: 'till', external_id: `${people}b` },
    ];
    const response = await store.post(customers, {
      customer: { ...someone(), metadata: { any: { thing: 2 } }, external_references: references },
    });
    expect([response.status, unknownIn(response)]).toEqual([
      201,
      'customer.external_references.0.sorce',
    ]);
    const card = await store.post(`${store.store}/cards`, {
      card: { name: 'Tea', auxiliary_fields: [{ value: 'x' }, { value: 'y', lable: 'z' }] },
    });
    expect([card.status, unknownIn(card)]).toEqual([201, 'card.auxiliary_fields.1.lable']);
  });

  it('CONV-43 Failures and repeated responses have `X-Unknown-Parameters` too', async () => {
    const nameless = await store.post(customers, { customer: { frist_name: 'Anna' } });
    expect([nameless.status, unknownIn(nameless)]).toEqual([422, 'customer.frist_name']);
    const nobody = await store.get(`${customers}/999999999?limt=3`);
    expect([nobody.status, unknownIn(nobody)]).toEqual([404, 'limt']);
    const key = { 'idempotency-key': 'unknown-input' };
    const payload = { customer: { ...someone(), color: 'red' } };
    const first = await store.send('POST', customers, payload, key);
    const again = await store.send('POST', customers, payload, key);
    expect([first, again].map(unknownIn)).toEqual(['customer.color', 'customer.color']);
    expect(again.headers.get('idempotent-replayed')).toBe('true');
  });

  it('CONV-44 When all names are known, there is no `X-Unknown-Parameters`', async () => {
    for (const response of [
      await store.post(customers, { customer: someone() }),
      await store.post(`${path}/stamp?dry_run=true`, { stamps: 1, note: 'Thanks' }),
      await store.get(`${customers}?search=anna&page=1`),
      await store.get(`${customers}/999999999`),
    ]) {
      expect([unknownIn(response), appliedTo(response)]).toEqual([null, null]);
    }
  });

  it('CONV-45 The names in `X-Unknown-Parameters` are percent-encoded and separated by commas', async () => {
    const odd = await store.get(
      `${customers}?${encodeURIComponent('a, b\r\nx: y')}=1&${encodeURIComponent('größe')}=2`,
    );
    expect(unknownIn(odd)).toBe('a%2C%20b%0D%0Ax%3A%20y, gr%C3%B6%C3%9Fe');
    const long = await store.post(`${path}/stamp?dry_run=true`, { stamps: 1, ['x'.repeat(65)]: 1 });
    expect(unknownIn(long)).toBe(`${'x'.repeat(64)}...`);
    const many = Object.fromEntries(Array.from({ length: 5_000 }, (_, i) => [`field_${i}`, i]));
    const much = await store.post(`${path}/stamp?dry_run=true`, { stamps: 1, ...many });
    expect(unknownIn(much)).toMatch(/^field_0, .*, field_49, [.]{3}$/);
    const heavy = Object.fromEntries(Array.from({ length: 40 }, (_, i) => [`ß${i}`.repeat(16), i]));
    const cut = await store.post(`${path}/stamp?dry_run=true`, { stamps: 1, ...heavy });
    expect(unknownIn(cut)).toMatch(/, [.]{3}$/);
    expect(unknownIn(cut)?.length).toBeLessThanOrEqual(1024);
  });

  it('CONV-46 With `Prefer: handling=strict` unknown names are 422 on each, together with all other invalid fields, and nothing happens', async () => {
    const before = await stamps();
    const body = { stamps: 1, refernce: 'R-1', staff_ref: 'x'.repeat(256) };
    const refused = await store.send<Failure>('POST', `${path}/stamp?dry=1`, body, STRICT);
    expectRefused(refused, ['refernce', 'dry', 'staff_ref']);
    expect(refused.body.errors?.['refernce']).toEqual(['is not known']);
    expect(refused.body.resolution).toMatch(/^Leave out what is not known/);
    const misspelt = { stamps: 1, externalref: 'R-1' };
    const suggested = await store.send<Failure>('POST', `${path}/stamp`, misspelt, STRICT);
    expectRefused(suggested, 'externalref');
    expect(suggested.body.resolution).toMatch(
      /^Did you mean external_ref instead of externalref[?] Leave out/,
    );
    expect([unknownIn(refused), appliedTo(refused)]).toEqual(['refernce, dry', 'handling=strict']);
    expect(await stamps()).toBe(before);
    const references = [{ source: 'till', external_id: '1', sorce: 'till' }];
    const wrapped = { customer: { ...someone(), external_references: references, id: 3 }, x: 1 };
    const response = await store.send<Failure>('POST', customers, wrapped, STRICT);
    expectRefused(response, ['external_references', 'id', 'x']);
    expect(response.body.errors?.['external_references']).toEqual(['0 sorce is not known']);
    const key = { ...STRICT, 'idempotency-key': 'strict' };
    expectRefused(await store.send('POST', `${path}/stamp`, { stamps: 1, ref: 1 }, key), 'ref');
    expect((await store.send('POST', `${path}/stamp`, { stamps: 1 }, key)).status).toBe(200);
  });

  it('CONV-47 `Preference-Applied: handling=strict` says that unknown names were looked for, whether or not there were any', async () => {
    const preferring = (prefer: string, query = '') =>
      store.send('GET', `${customers}${query}`, undefined, { prefer });
    for (const strict of [
      'Handling=Strict',
      'respond-async, handling="strict"; a=b',
      'wait=10;x="a,b",handling = strict, handling=lenient',
    ]) {
      const knownPreference = await preferring(strict);
      expect([knownPreference.status, unknownIn(knownPreference)]).toEqual([200, null]);
      expect(appliedTo(knownPreference)).toBe('handling=strict');
      expectRefused(await preferring(strict, '?limt=1'), 'limt');
    }
    for (const lenient of ['handling=lenient', 'strict', 'handling', 'x="handling=strict"']) {
      const response = await preferring(lenient, '?limt=1');
      expect([response.status, appliedTo(response)]).toEqual([200, null]);
    }
  });

  it('CONV-48 `X-Unknown-Parameters` and `handling=strict` hold for every operation; a record that does not exist is still reported first', async () => {
    const { body: document } = await service.anonymous.get<{ paths: Record<string, object> }>(
      '/openapi.json',
    );
    const operations = Object.entries(document.paths).flatMap(([template, methods]) =>
      Object.keys(methods).map((method) => [method.toUpperCase(), template] as const),
    );
    expect(operations.length).toBeGreaterThan(50);
    for (const [method, template] of operations) {
      const at = template.replace('{account_id}', String(store.accountId));
      const of = `${at.replaceAll(/\{\w+\}/g, '999999999')}?nobody=knows`;
      const isPicture = method === 'PUT' && /\/(?:strip_image|logo)$/.test(template);
      const isFile = method === 'POST' && template.endsWith('/imports');
      const hasBody = method !== 'GET' && !isPicture && !isFile;
      const bytes = Buffer.from(isPicture ? 'PNG' : 'email');
      const sent = isPicture || isFile ? bytes : hasBody ? { knows: 'nobody' } : undefined;
      const headers = {
        ...STRICT,
        ...(isPicture && { 'content-type': 'image/png' }),
        ...(isFile && { 'content-type': 'text/csv' }),
      };
      const response = await store.send<Failure>(method, of, sent, headers);
      const what = `${method} ${template}`;
      expect([what, unknownIn(response)]).toEqual([what, hasBody ? 'knows, nobody' : 'nobody']);
      const hasRecord = at.includes('{');
      expect([what, response.status, response.body.code]).toEqual(
        hasRecord ? [what, 404, 'not_found'] : [what, 422, 'validation_failed'],
      );
      expect([what, response.body.errors?.['nobody']]).toEqual([
        what,
        hasRecord ? undefined : ['is not known'],
      ]);
    }
  });
});
