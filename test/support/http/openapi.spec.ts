import { describe, expect, it } from '@jest/globals';
import { createResponseChecker } from './openapi.js';

const error = {
  type: 'object',
  required: ['error'],
  properties: { error: { type: 'string' }, code: { type: 'string' } },
};
const stamp = {
  type: ['object', 'null'],
  required: ['id'],
  additionalProperties: true,
  properties: {
    id: { type: 'integer' },
    note: { type: ['string', 'null'] },
    kind: { type: 'string', 'x-extensible-enum': ['a', 'b'] },
  },
};
const checkResponse = createResponseChecker({
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
          default: { $ref: '#/components/responses/OtherFailure' },
        },
      },
      delete: {
        'x-error-codes': ['spent'],
        responses: {
          204: { description: 'Done' },
          422: { $ref: '#/components/responses/Rejected' },
        },
      },
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
    responses: Object.fromEntries(
      ['NotFound', 'OtherFailure', 'Rejected'].map((name) => [
        name,
        {
          content: {
            'application/json': { schema: { $ref: '#/components/schemas/ErrorResponse' } },
          },
        },
      ]),
    ),
    schemas: {
      Stamp: stamp,
      ErrorResponse: error,
    },
  },
});

const headers = { 'Content-Type': 'application/json; charset=utf-8', 'ratelimit-limit': '300' };
const checkGet = (
  path: string,
  body: unknown,
  status = 200,
  responseHeaders: Record<string, string> = headers,
) => checkResponse({ method: 'GET', path, status, headers: responseHeaders, body });

const checkDelete = (body: unknown) =>
  checkResponse({ method: 'DELETE', path: '/stamps/1', status: 422, headers, body });

describe('the response checker', () => {
  it('accepts responses as the document describes them', () => {
    expect(checkGet('/stamps/1?x=y', { id: 1, note: null })).toEqual([]);
    expect(checkGet('/stamps/1', { error: 'gone' }, 404)).toEqual([]);
    expect(checkGet('/stamps/latest', [{ id: 1 }, null])).toEqual([]);
    const deletion = {
      method: 'DELETE',
      path: '/stamps/1',
      status: 204,
      headers: {},
      body: undefined,
    };
    expect(checkResponse(deletion)).toEqual([]);
    expect(checkDelete({ error: 'no', code: 'spent' })).toEqual([]);
    expect(checkDelete({ error: 'no', code: 'validation_failed' })).toEqual([]);
    const refused = { 'content-type': 'application/problem+json' };
    const problem = { type: '/x', title: 'no', status: 404, detail: 'no', instance: '/elsewhere' };
    expect(checkGet('/elsewhere', { error: 'no', ...problem }, 404, refused)).toEqual([]);
    expect(checkGet('/stamps/1', { error: 'no', ...problem }, 404, refused)).toEqual([]);
    expect(checkGet('/stamps/1', { error: 'no' }, 503)).toEqual([]);
    expect(checkGet('/stamps/1', { id: 1, note: null, kind: 'a' })).toEqual([]);
  });

  it.each([
    ['an undocumented field', () => checkGet('/stamps/1', { id: 1, colour: 'red' }), /colour/],
    [
      'an undocumented field of an item',
      () => checkGet('/stamps/latest', [{ id: 1, colour: 'red' }]),
      /colour/,
    ],
    ['an undocumented value', () => checkGet('/stamps/1', { id: 1, kind: 'c' }), /allowed values/],
    ['a field of another type', () => checkGet('/stamps/1', { id: '1' }), /must be integer/],
    ['a missing field', () => checkGet('/stamps/1', {}), /required property 'id'/],
    ['an undocumented status', () => checkGet('/stamps/1', {}, 202), /status 202/],
    [
      'an undocumented content type',
      () => checkGet('/stamps/1', { id: 1 }, 200, { ...headers, 'Content-Type': 'text/html' }),
      /text\/html/,
    ],
    [
      'a missing header',
      () => checkGet('/stamps/1', { id: 1 }, 200, { 'content-type': 'application/json' }),
      /RateLimit-Limit is missing/,
    ],
    [
      'a header of another type',
      () => checkGet('/stamps/1', { id: 1 }, 200, { ...headers, 'ratelimit-limit': 'many' }),
      /must be integer/,
    ],
    [
      'an undocumented body',
      () => checkResponse({ method: 'DELETE', path: '/stamps/1', status: 204, headers, body: {} }),
      /body that is not documented/,
    ],
    ['an undocumented operation', () => checkGet('/elsewhere', {}), /does not know this operation/],
    [
      'an error code that the operation lacks',
      () => checkDelete({ error: 'no', code: 'expired' }),
      /code expired is not documented/,
    ],
    [
      'an error without the error payload',
      () => checkGet('/elsewhere', {}, 404),
      /required property 'error'/,
    ],
  ])('reports %s', (_, check, expected) => {
    expect(check()).toEqual([expect.stringMatching(expected)]);
  });
});
