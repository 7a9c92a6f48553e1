import { describe, expect, it } from '@jest/globals';
import { Field, IntegerField, TextField } from './fields.js';
import { Dto, readElement } from './fields.pipe.js';
import { renderNames, toUnknownErrors, findUnknownInput } from './unknown-fields.js';

class Part {
  @TextField() declare readonly name: string;
}

@Dto('UnknownSample', { wrapper: 'thing', bare: true })
class Thing {
  @TextField() declare readonly name: string;
  @Field((value) => readElement(Part, value), { type: () => Part }, { optional: true })
  declare readonly part: Part | null;
}

@Dto('UnknownSampleCreation', { wrapper: 'thing', bare: true, inside: Thing })
class ThingCreation extends Thing {
  @IntegerField({ optional: true }) declare readonly beside: number | null;
}

class Query {
  @IntegerField({ optional: true }) declare readonly limit: number | null;
}

const TAKES = { query: Query, body: Thing };
const names = (input: { query?: unknown; body?: unknown }) => {
  const unknown = findUnknownInput(TAKES, { query: {}, body: undefined, ...input });
  return unknown && renderNames(unknown);
};
const faults = (body: unknown) => {
  const unknown = findUnknownInput(TAKES, { query: {}, body });
  return unknown && Object.fromEntries(toUnknownErrors(unknown, Thing));
};

describe('findUnknownInput', () => {
  it('finds nothing in a request with known fields only', () => {
    expect(
      names({ query: { limit: '3' }, body: { thing: { name: 'x', part: { name: 'y' } } } }),
    ).toBe(undefined);
  });

  it.each([[null], ['text'], [7], [[{ a: 1 }]], [Buffer.from('picture')]])(
    'is nothing in a body that is no object: %j',
    (body) => {
      expect(names({ body })).toBe(undefined);
    },
  );

  it('finds names outside the wrapper, inside it, and in its objects', () => {
    const body = { thing: { nmae: 'x', part: { nmae: 'y' } }, other: 1 };
    expect(names({ body })).toBe('other, thing.nmae, thing.part.nmae');
    expect(faults(body)).toEqual({
      other: ['is not known'],
      nmae: ['is not known'],
      part: ['nmae is not known'],
    });
  });

  it('finds fields on the wrong side of the wrapper', () => {
    const creation = (body: object) => {
      const unknown = findUnknownInput({ query: null, body: ThingCreation }, { query: {}, body });
      return unknown && renderNames(unknown);
    };
    expect(creation({ thing: { name: 'x' }, beside: 1 })).toBe(undefined);
    expect(creation({ name: 'x', beside: 1 })).toBe(undefined);
    expect(creation({ thing: { name: 'x', beside: 2 }, name: 'y', beside: 1 })).toBe(
      'name, thing.beside',
    );
    expect(creation({ thing: { thing: { name: 'x' } } })).toBe('thing.thing');
    for (const thing of [null, [], 'x']) {
      expect(creation({ thing, name: 'y', beside: 1 })).toBe('name');
    }
    const body = { thing: { name: 'x' }, name: 'y', part: { nmae: 'z' } };
    expect(names({ body })).toBe('name, part');
    expect(faults(body)).toEqual({ name: ['is not known'], part: ['is not known'] });
  });

  it('finds names that mean something to JavaScript', () => {
    const query = JSON.parse('{"__proto__":1,"constructor":2,"":3}') as object;
    expect(names({ query })).toBe('__proto__, constructor, %22%22');
    const own = JSON.parse('{"__proto__":1}') as object;
    expect(Object.keys(faults(own) ?? {})).toEqual(['__proto__']);
  });

  it('encodes names that are not valid text', () => {
    expect(names({ query: { '\ud800a': 1 } })).toBe('%EF%BF%BDa');
  });

  it('finds every field where none is known', () => {
    const unknown = findUnknownInput(
      { query: null, body: null },
      { query: { a: 1 }, body: { b: {} } },
    );
    expect(unknown && renderNames(unknown)).toBe('b, a');
  });
});
