import { describe, expect, it } from '@jest/globals';
import { readOpenApiDocument } from '#web/docs/openapi-document.js';
import { buildRequest, convertArguments } from './tool-request.js';
import { describeTool } from './tool-schema.js';
import { TOOLS } from './tools.js';

const document = readOpenApiDocument('https://cards.example');
const tools = new Map(TOOLS.map((tool) => [tool.name, describeTool(document, tool)]));

function getTool(name: string) {
  const tool = tools.get(name);
  if (!tool) throw new Error(`no tool ${name}`);
  return tool;
}

describe('describeTool', () => {
  it('takes parameters and fields from the document', () => {
    const { method, path, inputSchema } = getTool('add_stamps');
    expect([method, path]).toEqual([
      'POST',
      '/api/v1/accounts/{account_id}/customers/{customer_id}/customer_cards/{id}/stamp',
    ]);
    expect(inputSchema['required']).toEqual([
      'account_id',
      'customer_id',
      'customer_card_id',
      'stamps',
      'idempotency_key',
    ]);
    expect(inputSchema['properties']).toMatchObject({
      stamps: { type: 'integer', minimum: 1, maximum: 100 },
      external_ref: { maxLength: 255 },
      dry_run: { type: 'boolean' },
      occurred_at: { type: 'string', description: expect.stringMatching(/ In ISO 8601[.]$/) },
      account_id: { description: 'The id of a store, see list_stores.' },
    });
  });

  it('describes every argument of every tool, in its objects too', () => {
    const missing: string[] = [];
    const visit = (schema: Record<string, unknown>, place: string) => {
      for (const [name, property] of Object.entries((schema['properties'] ?? {}) as object)) {
        const field = property as Record<string, unknown>;
        // An object of all fields of a record says as much by its name.
        const isDescribed = typeof field['description'] === 'string' || 'properties' in field;
        if (!isDescribed) missing.push(`${place}.${name}`);
        visit(field, `${place}.${name}`);
      }
    };
    for (const { name, inputSchema } of tools.values()) visit(inputSchema, name);
    expect(missing).toEqual([]);
  });

  it('knows neither null, nor references, nor formats of programs', () => {
    for (const { name, inputSchema } of tools.values()) {
      const text = JSON.stringify(inputSchema);
      expect([name, /"null"|[:,]null|[$]ref|"format"|"x-|9007199254740991/.exec(text)]).toEqual([
        name,
        null,
      ]);
    }
  });

  it('takes less room than 30 KB for all tools together', () => {
    const length = [...tools.values()]
      .map(
        ({ description, inputSchema }) => description.length + JSON.stringify(inputSchema).length,
      )
      .reduce((sum, size) => sum + size, 0);
    expect(length).toBeLessThan(30_000);
  });

  it('lets only tools that change nothing out of a key and a dry run', () => {
    for (const { name, kind, method, inputSchema } of tools.values()) {
      const properties = Object.keys(inputSchema['properties'] as object);
      expect([name, method === 'GET']).toEqual([name, kind === 'read']);
      expect([name, properties.includes('idempotency_key')]).toEqual([name, kind !== 'read']);
    }
  });
});

describe('buildRequest', () => {
  const ids = { account_id: 1, customer_id: 2, customer_card_id: 3 };

  it('puts each argument in its place', () => {
    expect(
      buildRequest(getTool('add_stamps'), { ...ids, stamps: 2, note: null, idempotency_key: 'k' }),
    ).toEqual({
      method: 'POST',
      url: '/api/v1/accounts/1/customers/2/customer_cards/3/stamp',
      headers: { prefer: 'handling=strict', 'idempotency-key': 'k' },
      body: { stamps: 2, note: null },
    });
    expect(
      buildRequest(getTool('find_customers'), { account_id: 1, search: 'a&b', email: null })?.url,
    ).toBe('/api/v1/accounts/1/customers?search=a%26b&email=');
  });

  it('sends a dry run without a key, and strictly, so that no operation carries it out', () => {
    expect(
      buildRequest(getTool('create_card'), {
        account_id: 1,
        card: { name: 'Tea' },
        idempotency_key: 'k',
        dry_run: true,
      }),
    ).toEqual({
      method: 'POST',
      url: '/api/v1/accounts/1/cards?dry_run=true',
      headers: { prefer: 'handling=strict' },
      body: { card: { name: 'Tea' } },
    });
  });

  it('limits lists unless the assistant does', () => {
    const urlOf = (args: object) =>
      buildRequest(getTool('list_rewards'), { account_id: 1, ...args })?.url;
    expect(urlOf({})).toBe('/api/v1/accounts/1/rewards?limit=50');
    expect(urlOf({ limit: 3 })).toBe('/api/v1/accounts/1/rewards?limit=3');
  });

  it.each(['..', '.', '%2e%2e', 'a/b', '1?x=1', '1#', '', undefined, null, {}, '１'])(
    'accepts no id %j, which could lead to another path',
    (id) => {
      const args = { ...ids, reason: 'x', idempotency_key: 'k' };
      expect(buildRequest(getTool('reverse_event'), { ...args, event_id: id })).toBeUndefined();
      expect(buildRequest(getTool('explain_balance'), { ...ids, account_id: id })).toBeUndefined();
    },
  );
});

describe('convertArguments', () => {
  const { inputSchema } = getTool('create_card');

  it('removes null at any depth but in metadata', () => {
    expect(
      convertArguments({}, { stamps: 1, note: null, card: { fields: [{ label: null }] } }),
    ).toEqual({ stamps: 1, card: { fields: [{}] } });
    expect(convertArguments({}, { customer: { metadata: { a: null } } })).toEqual({
      customer: { metadata: { a: null } },
    });
    expect(convertArguments({}, undefined)).toBeUndefined();
  });

  it('converts integers and booleans that are text, at any depth, and nothing else', () => {
    const convert = (value: unknown) => convertArguments(inputSchema, value);
    expect(
      convert({ account_id: '7', dry_run: 'true', card: { name: '12', stamps_required: ' 10 ' } }),
    ).toEqual({ account_id: 7, dry_run: true, card: { name: '12', stamps_required: 10 } });
    for (const card of [{ stamps_required: '1.5' }, { stamps_required: 'ten' }]) {
      expect(convert({ card })).toEqual({ card });
    }
    const list = { type: 'array', items: { type: 'integer' } };
    expect(convertArguments(list, ['1', 2, 'x'])).toEqual([1, 2, 'x']);
    const metadata = { customer: { metadata: { account_id: '7' } } };
    expect(convertArguments(getTool('create_customer').inputSchema, metadata)).toEqual(metadata);
  });
});
