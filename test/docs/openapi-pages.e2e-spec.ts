import { beforeAll, describe, expect, it } from '@jest/globals';
import { useSharedService } from '../support/http/contract.js';
import {
  listOperations,
  resolveReference,
  type Json,
  type OpenApiFile,
  type Operation,
} from '../support/http/openapi-file.js';
import { findRequests, fillIn, type Collection } from '../support/http/postman.js';
import { Client, type ApiResponse } from '../support/services/service.js';

const service = useSharedService();
let document: OpenApiFile;
let stranger: Client;

beforeAll(async () => {
  stranger = new Client(service.running.baseUrl, 0, null);
  document = (await stranger.get<OpenApiFile>('/openapi.json')).body;
});

const operations = () => listOperations(document);
const resolved = (value: unknown) => resolveReference(document, value);

/** What a page loads without being asked. */
function listLoaded(html: string): string[] {
  const loaded = html.matchAll(/(?:src|data-document|rel="\w+" href)="([^"]+)"/g);
  return [...loaded].map(([, link]) => link ?? '');
}

const expectNone = (missing: unknown[]) => expect(missing).toEqual([]);

describe('the pages and files made of the OpenAPI document', () => {
  it('OPENAPI-12 `/docs/reference` shows the OpenAPI document and loads nothing from other hosts', async () => {
    const links: string[] = [];
    for (const path of ['/docs/reference', '/docs/reference/try']) {
      const page: ApiResponse = await stranger.get(path);
      expect(page.headers.get('content-type')).toContain('text/html');
      expect(page.headers.get('content-security-policy')).toContain("default-src 'none'");
      links.push(...listLoaded(page.text));
    }
    expectNone(links.filter((link) => !/^[/]\w/.test(link)));
    expect(links).toEqual(expect.arrayContaining(['/docs/reference/openapi.json']));
    expect(links.length).toBeGreaterThan(6);
    for (const link of links) {
      expect([link, (await stranger.get(link)).status]).toEqual([link, 200]);
    }
    const publicDocument = await stranger.get<OpenApiFile>('/docs/reference/openapi.json');
    expect(Object.keys(publicDocument.body.paths)).toEqual(Object.keys(document.paths));
  });

  it('OPENAPI-13 `/openapi.json` and the pages of `/docs` are compressed and have an `ETag`', async () => {
    for (const path of [
      '/openapi.json',
      '/docs',
      '/docs/versioning',
      '/docs/reference',
      '/docs/reference/openapi.json',
      '/docs/search.json',
      '/docs/postman.json',
      '/docs/rules',
      '/docs/rules.md',
      '/llms.txt',
    ]) {
      const sendRequest = (headers: Record<string, string>) =>
        stranger.send('GET', path, undefined, headers);
      const plain = await sendRequest({ 'accept-encoding': 'identity' });
      const tags = [plain.headers.get('etag')];
      for (const encoding of ['br', 'gzip']) {
        const { headers, text } = await sendRequest({ 'accept-encoding': encoding });
        expect([path, headers.get('content-encoding')]).toEqual([path, encoding]);
        // Its length is known beforehand: it is not compressed anew for each who asks.
        expect(Number(headers.get('content-length'))).toBeGreaterThan(0);
        expect(Number(headers.get('content-length'))).toBeLessThan(plain.text.length);
        expect(text).toBe(plain.text);
        expect(headers.get('vary')).toMatch(/accept-encoding/i);
        const tag = headers.get('etag');
        const conditionalHeaders = {
          'accept-encoding': encoding,
          'if-none-match': `"other", W/${tag}`,
        };
        const again = await sendRequest(conditionalHeaders);
        expect([again.status, again.text]).toEqual([304, '']);
        expect(again.headers.get('etag')).toBe(tag);
        expect(again.headers.get('cache-control')).toBe('no-cache, no-transform');
        tags.push(tag);
      }
      expect(new Set(tags).size).toBe(3);
      const otherResponse = await sendRequest({
        'accept-encoding': 'identity',
        'if-none-match': '"other"',
      });
      expect([otherResponse.status, otherResponse.text]).toEqual([200, plain.text]);
    }
  });

  it('OPENAPI-16 `/docs/postman.json` is a Postman collection (v2.1) of every operation, in folders by tag, with the token, the address and the ids as variables', async () => {
    const { body, headers } = await stranger.get<Collection>('/docs/postman.json');
    expect(headers.get('content-type')).toMatch(/^application\/json/);
    expect(body.info.schema).toMatch(/\/collection\/v2\.1\.0\/collection\.json$/);
    expect(body.auth).toEqual({
      type: 'bearer',
      bearer: [{ key: 'token', value: '{{token}}', type: 'string' }],
    });
    const { servers } = document as OpenApiFile & { servers: object[] };
    const inFolders = body.item.flatMap((folder) =>
      folder.item.map(({ name }) => [folder.name, name]),
    );
    const expected = operations().map(({ operation }) => [operation.tags[0], operation.summary]);
    expect(inFolders.sort()).toEqual(expected.sort());
    const values = new Map(body.variable.map(({ key, value }) => [key, value]));
    expect([{ url: values.get('base_url') }, values.get('token')]).toEqual([...servers, '']);
    const requests = findRequests(body);
    expect(requests.map(({ method, url }) => `${method} /${url.path.join('/')}`).sort()).toEqual(
      operations()
        .map(({ name }) => name.replaceAll(/\{(\w+)\}/g, ':$1'))
        .sort(),
    );
    for (const { method, url, header, body: sent } of requests) {
      expect(url.raw).toBe(`{{base_url}}/${url.path.join('/')}`);
      const named = url.path.filter((part) => part.startsWith(':')).map((part) => part.slice(1));
      expect(url.variable.map(({ key }) => key)).toEqual(named);
      for (const { value } of url.variable) {
        expect([value, values.has(value.slice(2, -2))]).toEqual([value, true]);
      }
      const isWrite = method !== 'GET';
      expect([url.raw, header.some(({ key }) => key === 'Idempotency-Key')]).toEqual([
        url.raw,
        isWrite,
      ]);
      const json = sent?.mode === 'raw' ? fillIn(sent.raw, values) : '{}';
      expect(typeof JSON.parse(json)).toBe('object');
    }
  });

  it('OPENAPI-17 The requests of the Postman collection work as they are once the token and the ids are set', async () => {
    const { body } = await stranger.get<Collection>('/docs/postman.json');
    const store = await service.newStore();
    const values = new Map(body.variable.map(({ key, value }) => [key, value]));
    values.set('account_id', String(store.accountId));
    const all = findRequests(body);
    const send = async ({ method, url, header, body: sent }: (typeof all)[number]) => {
      const ids = new Map(url.variable.map(({ key, value }) => [key, fillIn(value, values)]));
      const path = url.path.map((part) => (part.startsWith(':') ? ids.get(part.slice(1)) : part));
      const json =
        sent?.mode === 'raw' ? (JSON.parse(fillIn(sent.raw, values)) as Json) : undefined;
      const own = header.filter(({ value }) => !value.startsWith('{{'));
      const headers = Object.fromEntries(own.map(({ key, value }) => [key.toLowerCase(), value]));
      return store.send<Json>(method, `/${path.join('/')}`, json, json ? headers : {});
    };
    // As somebody who fills in the variables one after the other.
    const steps = [
      ['Create a card', 'card_id'],
      ['Create a reward', 'reward_id'],
      ['Create a customer', 'customer_id'],
      ['Create a location', 'location_id'],
      ['Create a poster', 'poster_id'],
      ['Create a webhook subscription', 'subscription_id'],
      ['Create an announcement', 'announcement_id'],
      ['Create a message rule', 'message_rule_id'],
      ['Add stamps', ''],
    ] as const;
    for (const [name, variable] of steps) {
      const request = all.find((request) => request.name === name);
      const response = request && (await send(request));
      expect([name, response?.status, response?.text]).toEqual([
        name,
        name === 'Add stamps' ? 200 : 201,
        response?.text,
      ]);
      if (variable !== '') values.set(variable, String(response?.body['id']));
      if (variable !== 'customer_id') continue;
      const { id, code } = (response?.body['customer_card'] ?? {}) as Json;
      values.set('customer_card_id', String(id)).set('code', String(code));
    }
    // A delivery, an import and a proof need a dispatcher, which does not run here.
    const missing = new Map([
      ['Show a delivery', 404],
      ['Show an import', 404],
      ['List the rows of an import', 404],
      ['Prove that an event is in the signed history', 404],
    ]);
    const reads = all.filter(({ method }) => method === 'GET');
    expect(reads.length).toBeGreaterThan(25);
    for (const request of reads) {
      const { status } = await send(request);
      expect([request.name, status]).toEqual([request.name, missing.get(request.name) ?? 200]);
    }
  });

  it('OPENAPI-18 `/docs/reference` has every operation with its method, path, summary, parameters and fields as HTML, without a script', async () => {
    const { text } = await stranger.get('/docs/reference');
    const parts = text.replaceAll('<wbr>', '').split('<article ').slice(1);
    const { body: reference } = await stranger.get<OpenApiFile>('/docs/reference/openapi.json');
    const events = Object.keys(reference['webhooks'] as Json);
    expect(parts.length).toBe(operations().length + events.length);
    for (const event of events) {
      const part = parts.find((one) => one.includes(`<code>${event}</code></p>`)) ?? '';
      expect([event, part.includes('<dt><code>timestamp</code>')]).toEqual([event, true]);
    }
    for (const { method, path, operation } of operations()) {
      const { operationId, tags, summary } = operation as Operation & { summary: string };
      const anchor = `tag/${tags[0]?.toLowerCase().replaceAll(' ', '-')}/${operationId}`;
      const part = parts.find((candidate) => candidate.includes(`id="${anchor}"`)) ?? '';
      expect([operationId, part.includes(`>${method}</b> <code>${path}</code>`)]).toEqual([
        operationId,
        true,
      ]);
      expect(part).toContain(`>${summary}</a></h3>`);
      const { parameters = [] } = (
        reference.paths[path] as Record<string, { parameters?: object[] }>
      )[method.toLowerCase()] ?? { parameters: [] };
      const body = resolved(operation.requestBody?.content['application/json']?.schema ?? {});
      const names = [
        ...parameters.map((parameter) => String(resolved(parameter)['name'])),
        ...Object.keys((body['properties'] ?? {}) as Json),
      ];
      for (const name of names) {
        expect([operationId, name, part.includes(`<dt><code>${name}</code>`)]).toEqual([
          operationId,
          name,
          true,
        ]);
      }
    }
  });

  it('OPENAPI-19 The first load of `/docs/reference`, with everything that it needs, is under 300 KB compressed; requests are tried at `/docs/reference/try`', async () => {
    const { text } = await stranger.get('/docs/reference');
    let total = 0;
    for (const path of ['/docs/reference', ...listLoaded(text)]) {
      const response = await fetch(service.running.baseUrl + path, {
        headers: { 'accept-encoding': 'gzip' },
      });
      const length = response.headers.get('content-length');
      total += Number(length ?? (await response.arrayBuffer()).byteLength);
    }
    expect(total).toBeGreaterThan(20_000);
    expect(total).toBeLessThan(300_000);
    expect(text).toContain('href="/docs/reference/try?operation=stampCustomerCard"');
    expect((await stranger.get('/docs/reference/try')).text).toContain('/scalar.js"');
  });
});
