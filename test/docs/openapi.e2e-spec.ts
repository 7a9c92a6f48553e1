import { beforeAll, describe, expect, it } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { useSharedService } from '../support/http/contract.js';
import {
  listOperations,
  resolveReference,
  type Json,
  type OpenApiFile,
  type Operation,
} from '../support/http/openapi-file.js';
import { Client } from '../support/services/service.js';

const service = useSharedService();
let document: OpenApiFile;
let stranger: Client;

beforeAll(async () => {
  stranger = new Client(service.running.baseUrl, 0, null);
  document = (await stranger.get<OpenApiFile>('/openapi.json')).body;
});

const operations = () => listOperations(document);
const resolved = (value: unknown) => resolveReference(document, value);

/** Every value under this key, anywhere in the document. */
function everything(key: string, value: unknown = document): unknown[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, inner]) => [
    ...(name === key ? [inner] : []),
    ...everything(key, inner),
  ]);
}

const expectNone = (missing: unknown[]) => expect(missing).toEqual([]);

describe('the OpenAPI document', () => {
  it('OPENAPI-01 `/openapi.json` is served without a token, as OpenAPI 3.1', async () => {
    const { status, headers } = await stranger.get('/openapi.json');
    expect([status, document.openapi]).toEqual([200, '3.1.0']);
    expect(headers.get('content-type')).toMatch(/^application\/json/);
  });

  it('OPENAPI-02 The OpenAPI document has every documented operation', () => {
    const store = '/api/v1/accounts/{account_id}';
    const record = (name: string, ...methods: string[]) =>
      methods.map((method) => `${method} ${store}/${name}/{id}`);
    const list = (name: string) => [`GET ${store}/${name}`, `POST ${store}/${name}`];
    const owned = 'customers/{customer_id}/customer_cards';
    expect(operations().map(({ name }) => name)).toEqual(
      expect.arrayContaining([
        'GET /api/v1/status',
        'GET /api/v1/accounts',
        `GET ${store}`,
        `PATCH ${store}`,
        ...list('cards'),
        ...record('cards', 'GET', 'PATCH'),
        `POST ${store}/cards/{id}/archive`,
        `POST ${store}/cards/{id}/unarchive`,
        ...list('customers'),
        ...record('customers', 'GET', 'PATCH'),
        ...list(owned),
        ...record(owned, 'GET'),
        `POST ${store}/${owned}/{id}/stamp`,
        `POST ${store}/${owned}/{id}/redeem`,
        `POST ${store}/${owned}/{id}/adjust`,
        `POST ${store}/${owned}/{id}/events/{event_id}/reverse`,
        ...['rewards', 'locations', 'posters', 'webhook_subscriptions'].flatMap((name) => [
          ...list(name),
          ...record(name, 'GET', 'PATCH', 'DELETE'),
        ]),
        `POST ${store}/webhook_subscriptions/{id}/test`,
        `POST ${store}/webhook_subscriptions/{id}/rotate_secret`,
      ]),
    );
  });

  it('OPENAPI-03 The OpenAPI document has no operation that does not exist', async () => {
    const store = await service.newStore();
    const missing: string[] = [];
    for (const { method, path, name } of operations()) {
      const real = path
        .replace('{account_id}', String(store.accountId))
        .replaceAll(/\{[^}]+\}/g, '999999999');
      const { body, status } = await store.send<{ error: string }>(method, real);
      const isUnknown = status === 405 || (status === 404 && /path/i.test(body.error));
      if (isUnknown) missing.push(`${name} ${status} ${body.error}`);
    }
    expectNone(missing);
  });

  it('OPENAPI-04 Each operation has a unique `operationId` and one tag', () => {
    const all = operations();
    expect(new Set(all.map(({ operation }) => operation.operationId)).size).toBe(all.length);
    expectNone(all.filter(({ operation }) => operation.tags.length !== 1));
    const names = everything('operationId') as string[];
    expect(names.length).toBeGreaterThan(all.length);
    expectNone(names.filter((name) => !/^[a-z][A-Za-z]+$/.test(name)));
    const received = Object.values(document['webhooks'] as Record<string, { post: Operation }>);
    const tags = new Set(all.flatMap(({ operation }) => operation.tags));
    expectNone(received.filter(({ post }) => post.tags.some((tag) => tags.has(tag))));
  });

  it('OPENAPI-05 Every reference in the OpenAPI document resolves', () => {
    const references = everything('$ref').filter((ref) => typeof ref === 'string');
    expect(references.length).toBeGreaterThan(20);
    expectNone(references.filter(($ref) => Object.keys(resolved({ $ref })).length === 0));
  });

  it('OPENAPI-06 Every operation except the status needs the bearer token', () => {
    const open = operations().filter(
      ({ operation }) => (operation.security ?? document.security ?? []).length === 0,
    );
    expect(open.map(({ name }) => name)).toEqual(['GET /api/v1/status']);
    const schemes = Object.values(resolved({ $ref: '#/components/securitySchemes' }));
    expect(schemes).toEqual([expect.objectContaining({ type: 'http', scheme: 'bearer' })]);
  });

  it('OPENAPI-07 Every operation lists the failures of its own, and as `default` all others, each with the error object', () => {
    const missing: string[] = [];
    for (const { name, path, operation } of operations()) {
      const statuses = ['422', 'default'];
      if (path.includes('{')) statuses.push('404');
      if (operation.requestBody) statuses.push('409');
      for (const status of statuses) {
        if (!(status in operation.responses)) missing.push(`${name} ${status}`);
      }
      for (const [status, response] of Object.entries(operation.responses)) {
        if (Number(status) < 300) continue;
        const { content } = resolved(response) as { content?: Record<string, { schema: Json }> };
        const { properties } = resolved(content?.['application/json']?.schema ?? {});
        const fields = Object.keys((properties ?? {}) as Json);
        for (const field of ['error', 'code', 'documentation_url', 'request_id']) {
          if (!fields.includes(field)) missing.push(`${name} ${status} ${field}`);
        }
      }
    }
    expectNone(missing);
  });

  it('OPENAPI-14 The OpenAPI document lets clients accept what is added later', () => {
    const { schemas } = document['components'] as { schemas: Record<string, Json> };
    const responses = operations().map(({ operation }) => operation.responses);
    const results = collect([responses, document['webhooks']]);
    for (const [name, schema] of Object.entries(schemas)) {
      const isResult = results.has(name);
      const expectNoneIn = (values: unknown[]) => expect([name, values]).toEqual([name, []]);
      if (isResult) expectNoneIn(everything('enum', schema));
      const isOpen = !('properties' in schema) || schema['additionalProperties'] === true;
      expect([name, isOpen || !isResult]).toEqual([name, true]);
      expectNoneIn(everything('default', schema));
    }
    const bodies = operations().map(({ operation }) => operation.requestBody ?? null);
    expectNone(everything('default', bodies));

    function collect(from: unknown): Set<string> {
      const names = new Set<string>();
      const visit = (value: unknown) => {
        for (const $ref of everything('$ref', value) as string[]) {
          const name = $ref.split('/').at(-1) ?? '';
          if (names.has(name)) continue;
          names.add(name);
          visit(resolved({ $ref }));
        }
      };
      visit(from);
      return names;
    }
  });

  it('OPENAPI-15 Every integer that may exceed 32 bits has the format `int64`', () => {
    const integers = [
      ...everything('schema'),
      ...everything('properties').flatMap((fields) => Object.values(fields as Json)),
    ] as Json[];
    const wide = integers.filter(
      ({ type, maximum, format }) =>
        [type].flat().includes('integer') &&
        !(typeof maximum === 'number' && maximum < 2 ** 31) &&
        format !== 'int64',
    );
    expect(integers.length).toBeGreaterThan(100);
    expectNone(wide);
  });

  it('OPENAPI-08 Every response lists the rate-limit headers and the request id', () => {
    const missing = operations().flatMap(({ name, operation }) =>
      Object.entries(operation.responses).flatMap(([status, response]) => {
        const named = Object.keys((resolved(response)['headers'] ?? {}) as Json);
        return [
          'X-Request-Id',
          'RateLimit-Limit',
          'RateLimit-Remaining',
          'RateLimit-Reset',
          'RateLimit-Policy',
        ]
          .filter((header) => !named.includes(header))
          .map((header) => `${name} ${status} ${header}`);
      }),
    );
    expectNone(missing);
  });

  it('OPENAPI-09 The OpenAPI document lists the icons and the drawn presets', () => {
    const rules = readFileSync('docs/api.md', 'utf8').replaceAll(/\s+/g, ' ');
    const icons = /Icons: (.*?)\./.exec(rules)?.[1]?.split(', ') ?? [];
    const presets = /Presets that are drawn: (.*?);/.exec(rules)?.[1]?.split(', ') ?? [];
    expect([icons.length, presets.length]).toEqual([38, 12]);
    expect(everything('enum')).toContainEqual(icons);
    const described = everything('strip_preset').map((schema) => JSON.stringify(schema));
    expect(described.some((text) => presets.every((preset) => text.includes(preset)))).toBe(true);
  });

  it('OPENAPI-10 The OpenAPI document lists the names of the events', () => {
    const events = [
      'customer.created',
      'customer.updated',
      'customer_card.created',
      'stamp.earned',
      'stamp.removed',
      'reward.unlocked',
      'reward.redeemed',
    ];
    const lists = [...everything('enum'), ...everything('x-extensible-enum')].filter((list) =>
      Array.isArray(list),
    ) as unknown[][];
    expect(lists.some((list) => [...events, '*'].every((event) => list.includes(event)))).toBe(
      true,
    );
  });

  it('OPENAPI-11 The OpenAPI document shows bodies with their wrappers', () => {
    const wrappers = operations()
      .filter(({ operation }) => operation.requestBody)
      .map(({ method, path, operation }): [string, string, string[]] => {
        const schema = resolved(operation.requestBody?.content['application/json']?.schema ?? {});
        const end = path.replace('/{id}', '').replace('{account_id}', 'accounts');
        return [
          method,
          end.slice(end.lastIndexOf('/') + 1),
          (schema['required'] ?? []) as string[],
        ];
      });
    for (const [resource, wrapper] of [
      ['cards', 'card'],
      ['customers', 'customer'],
      ['rewards', 'reward'],
      ['locations', 'location'],
      ['posters', 'poster'],
    ]) {
      expect(wrappers).toContainEqual(['POST', resource, [wrapper]]);
      expect(wrappers).toContainEqual(['PATCH', resource, [wrapper]]);
    }
    expect(wrappers).toContainEqual(['PATCH', 'accounts', ['account']]);
    expect(wrappers).toContainEqual(['POST', 'stamp', ['stamps']]);
    expect(wrappers).toContainEqual(['POST', 'redeem', ['reward_id']]);
    expect(wrappers).toContainEqual(['POST', 'adjust', ['stamps', 'reason']]);
    expect(wrappers).toContainEqual(['POST', 'webhook_subscriptions', ['target_url']]);
  });
});
