import { describe, expect, it } from '@jest/globals';
import { createResponseChecker } from './openapi.js';

const error = { type: 'object', required: ['error'], properties: { error: { type: 'string' } } };
const stamp = {
  type: ['object', 'null'],
  required: ['id'],
  properties: { id: { type: 'integer' }, note: { type: ['string', 'null'] } },
};
const faultsOf = createResponseChecker({
  openapi: '3.1.0',
  paths: {
    '/stamps/{id}': {
      get: {
        responses: {
          200: {
            headers: { 'RateLimit-Limit': { $ref: '#/components/headers/Limit' } },
            content: { 'application/json': { schema: { $ref: '#/components/schemas/Stamp' } } },
          },
          404: { $ref: '#/components/responses/NotFound' },
        },
      },
      delete: { responses: { 204: { description: 'Done' } } },
    },
    '/stamps/latest': {
      get: {
        responses: {
          200: { content: { 'application/json': { schema: { type: 'array', items: stamp } } } },
        },
      },
    },
  },
  components: {
    headers: { Limit: { required: true, schema: { type: 'integer' } } },
    responses: {
      NotFound: {
        content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
      },
    },
    schemas: {
      Stamp: stamp,
      Error: error,
      Problem: { ...error, required: ['error', 'title'], properties: { error: {}, title: {} } },
    },
  },
});

const headers = { 'Content-Type': 'application/json; charset=utf-8', 'ratelimit-limit': '300' };
const get = (path: string, body: unknown, status = 200, sent: Record<string, string> = headers) =>
  faultsOf({ method: 'GET', path, status, headers: sent, body });

describe('the answer checker', () => {
  it('accepts what the document describes', () => {
    expect(get('/stamps/1?x=y', { id: 1, note: null })).toEqual([]);
    expect(get('/stamps/1', { error: 'gone' }, 404)).toEqual([]);
    expect(get('/stamps/latest', [{ id: 1 }, null])).toEqual([]);
    const done = { method: 'DELETE', path: '/stamps/1', status: 204, headers: {}, body: undefined };
    expect(faultsOf(done)).toEqual([]);
    const refused = { 'content-type': 'application/problem+json' };
    expect(get('/elsewhere', { error: 'no', title: 'no' }, 404, refused)).toEqual([]);
  });

  it.each([
    ['a field that is not documented', () => get('/stamps/1', { id: 1, colour: 'red' }), /colour/],
    ['… deep inside too', () => get('/stamps/latest', [{ id: 1, colour: 'red' }]), /colour/],
    ['a field of another type', () => get('/stamps/1', { id: '1' }), /must be integer/],
    ['a missing field', () => get('/stamps/1', {}), /required property 'id'/],
    ['a status', () => get('/stamps/1', {}, 500), /status 500/],
    [
      'a content type',
      () => get('/stamps/1', { id: 1 }, 200, { ...headers, 'Content-Type': 'text/html' }),
      /text\/html/,
    ],
    [
      'a missing header',
      () => get('/stamps/1', { id: 1 }, 200, { 'content-type': 'application/json' }),
      /RateLimit-Limit is missing/,
    ],
    [
      'a header of another type',
      () => get('/stamps/1', { id: 1 }, 200, { ...headers, 'ratelimit-limit': 'many' }),
      /must be integer/,
    ],
    [
      'a body where there is none',
      () => faultsOf({ method: 'DELETE', path: '/stamps/1', status: 204, headers, body: {} }),
      /body that is not documented/,
    ],
    ['an operation', () => get('/elsewhere', {}), /does not know this operation/],
    ['an error without its payload', () => get('/elsewhere', {}, 404), /required property 'error'/],
  ])('finds %s', (_, faults, expected) => {
    expect(faults()).toEqual([expect.stringMatching(expected)]);
  });
});
