import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { startService, type Client, type LocalService } from '../support/services/service.js';

/** Ids may be as large as 2^53 - 1. A statement that infers `integer` for one fails. */

type Parameter = { name: string; in: string; schema: { type?: string; enum?: string[] } };
type Operation = { parameters?: (Parameter | { $ref: string })[] };
type Document = {
  paths: Record<string, Record<string, Operation>>;
  components: { parameters?: Record<string, Parameter> };
};

const LARGE = [2 ** 31, Number.MAX_SAFE_INTEGER];
const document = JSON.parse(readFileSync('openapi.json', 'utf8')) as Document;

/** The requests that read something by ids or with ids in their query, each choice of a filter once. */
function* createRequests(accountId: number, id: number): Generator<string> {
  for (const [template, { get }] of Object.entries(document.paths)) {
    if (!get || !template.includes('{account_id}')) continue;
    const path = template
      .replace('{account_id}', String(accountId))
      .replace(/\{\w+\}/g, () => String(id));
    const parameters = (get.parameters ?? []).flatMap((queryParameter) => {
      const parameter =
        '$ref' in queryParameter
          ? document.components.parameters?.[parseName(queryParameter.$ref)]
          : queryParameter;
      return parameter?.in === 'query' ? [parameter] : [];
    });
    const ids = parameters.filter(({ name }) => name.endsWith('_id'));
    const query = ids.map(({ name }) => `${name}=${id}`);
    yield `${path}?${query.join('&')}`;
    for (const name of query) yield `${path}?${name}`;
    for (const { name, schema } of parameters) {
      for (const value of schema.enum ?? []) yield `${path}?${name}=${value}&${query.join('&')}`;
    }
  }
}

const parseName = (reference: string) => reference.slice(reference.lastIndexOf('/') + 1);

let service: LocalService;
let store: Client;

beforeAll(async () => {
  service = await startService({ RATE_LIMIT_PER_MINUTE: '1000000' });
  store = await service.newStore();
});
afterAll(() => service.stop());

describe('an id that no record has', () => {
  it.each(LARGE)('is no internal error, in a path and in a query: %i', async (id) => {
    const requests = [...createRequests(store.accountId, id)];
    expect(requests.filter((path) => path.includes('statistics')).length).toBeGreaterThan(5);
    for (const path of requests) {
      const { status } = await store.get(path);
      expect([path, [200, 404, 422].includes(status)]).toEqual([path, true]);
    }
  });
});
