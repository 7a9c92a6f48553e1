import { describe, expect, it } from '@jest/globals';
import { z } from 'zod';
import { JsonSchemas } from './json-schema.js';

const published = (schema: z.ZodType) => new JsonSchemas().of(schema, 'output');

describe('a published schema', () => {
  it.each([
    ['of a nullable value has a list of types', z.int().nullable(), { type: ['integer', 'null'] }],
    [
      'of a nullable choice has null among its values',
      z.enum(['a', 'b']).nullable(),
      { type: ['string', 'null'], enum: ['a', 'b', null] },
    ],
    [
      'of a nullable component keeps the reference',
      z.object({}).meta({ id: 'Thing' }).nullable(),
      { anyOf: [{ $ref: '#/components/schemas/Thing' }, { type: 'null' }] },
    ],
    [
      'of a record is open for what it says',
      z.record(z.string(), z.boolean()),
      {
        type: 'object',
        propertyNames: { type: 'string' },
        additionalProperties: { type: 'boolean' },
      },
    ],
    [
      'of an object is open, and leaves values alone',
      z.object({ id: z.string() }).meta({ example: { id: 'x', example: 1 } }),
      {
        type: 'object',
        required: ['id'],
        properties: { id: { type: 'string' } },
        examples: [{ id: 'x', example: 1 }],
      },
    ],
    [
      'keeps a field that is called like a keyword',
      z.object({ example: z.string(), minimum: z.int() }),
      {
        type: 'object',
        required: ['example', 'minimum'],
        properties: { example: { type: 'string' }, minimum: { type: 'integer' } },
      },
    ],
  ])('%s', (_, schema, expected) => {
    expect(published(schema)).toEqual(expected);
  });
});

describe('an example', () => {
  const fields = {
    name: z.string().meta({ example: 'Coffee' }),
    count: z.int().min(3),
    note: z.string().nullable(),
    tags: z.array(z.enum(['a', 'b'])).optional(),
  };

  it('of an answer shows every field', () => {
    const schemas = new JsonSchemas();
    const schema = schemas.of(z.object(fields).meta({ id: 'Thing' }), 'output');
    expect(schemas.example(schema, 'output')).toEqual({
      name: 'Coffee',
      count: 3,
      note: null,
      tags: ['a'],
    });
  });

  it('of a request shows what is required and what has an example', () => {
    const schemas = new JsonSchemas();
    const more = { hint: z.string().optional().meta({ example: 'x' }) };
    const schema = schemas.of(z.object({ ...fields, ...more }), 'input');
    expect(schemas.example(schema, 'input')).toEqual({
      name: 'Coffee',
      count: 3,
      note: null,
      hint: 'x',
    });
  });

  it('is missed where nobody can guess it, by the name of the field', () => {
    const schemas = new JsonSchemas();
    const answer = schemas.of(
      z.object({ cards: z.array(z.object({ name: z.string() })) }),
      'output',
    );
    expect(() => schemas.example(answer, 'output')).toThrow('no example for .cards[].name');
    const changes = schemas.of(z.object({ name: z.string().optional() }), 'input');
    expect(() => schemas.example(changes, 'input')).toThrow('no example for an empty object');
  });
});
