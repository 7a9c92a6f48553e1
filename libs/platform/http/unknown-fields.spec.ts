import { describe, expect, it } from '@jest/globals';
import { Field, IntegerField, TextField } from './fields.js';
import { Dto, getFields } from './dtos.js';
import { toFieldMessages } from '#platform/kernel/issues.js';
import { renderNames, suggestNames, toUnknownErrors, findUnknownInput } from './unknown-fields.js';

class Part {
  @TextField() declare readonly name: string;
}

@Dto('UnknownSample', { wrapper: 'thing', bare: true })
class Thing {
  @TextField() declare readonly name: string;
  @Field({ schema: { type: () => Part }, nested: { dto: () => Part } }, { optional: true })
  declare readonly part: Part | null;
}

@Dto('UnknownSampleCreation', { wrapper: 'thing', bare: true, inside: Thing })
class ThingCreation extends Thing {
  @IntegerField({ optional: true }) declare readonly beside: number | null;
}

class Query {
  @IntegerField({ optional: true }) declare readonly limit: number | null;
}

const ENDPOINT = { query: Query, body: Thing };
const findNames = (input: { query?: unknown; body?: unknown }) => {
  const unknown = findUnknownInput(ENDPOINT, { query: {}, body: undefined, ...input });
  return unknown && renderNames(unknown);
};
const findErrors = (body: unknown) => {
  const unknown = findUnknownInput(ENDPOINT, { query: {}, body });
  return unknown && toFieldMessages(Object.fromEntries(toUnknownErrors(unknown, Thing)));
};

describe('findUnknownInput', () => {
  it('finds nothing in a request with known fields only', () => {
    expect(
      findNames({ query: { limit: '3' }, body: { thing: { name: 'x', part: { name: 'y' } } } }),
    ).toBe(undefined);
  });

  it.each([[null], ['text'], [7], [[{ a: 1 }]], [Buffer.from('picture')]])(
    'finds nothing in a body that is not an object: %j',
    (body) => {
      expect(findNames({ body })).toBe(undefined);
    },
  );

  it('finds names outside the wrapper, inside it, and in its objects', () => {
    const body = { thing: { nmae: 'x', part: { nmae: 'y' } }, other: 1 };
    expect(findNames({ body })).toBe('other, thing.nmae, thing.part.nmae');
    expect(findErrors(body)).toEqual({
      other: ['is not known'],
      nmae: ['is not known'],
      part: ['nmae is not known'],
    });
  });

  it('finds fields on the wrong side of the wrapper', () => {
    const findInCreation = (body: object) => {
      const unknown = findUnknownInput({ query: null, body: ThingCreation }, { query: {}, body });
      return unknown && renderNames(unknown);
    };
    expect(findInCreation({ thing: { name: 'x' }, beside: 1 })).toBe(undefined);
    expect(findInCreation({ name: 'x', beside: 1 })).toBe(undefined);
    expect(findInCreation({ thing: { name: 'x', beside: 2 }, name: 'y', beside: 1 })).toBe(
      'name, thing.beside',
    );
    expect(findInCreation({ thing: { thing: { name: 'x' } } })).toBe('thing.thing');
    for (const thing of [null, [], 'x']) {
      expect(findInCreation({ thing, name: 'y', beside: 1 })).toBe('name');
    }
    const body = { thing: { name: 'x' }, name: 'y', part: { nmae: 'z' } };
    expect(findNames({ body })).toBe('name, part');
    expect(findErrors(body)).toEqual({ name: ['is not known'], part: ['is not known'] });
  });

  it('finds names with a meaning in JavaScript, such as __proto__', () => {
    const query = JSON.parse('{"__proto__":1,"constructor":2,"":3}') as object;
    expect(findNames({ query })).toBe('__proto__, constructor, %22%22');
    const own = JSON.parse('{"__proto__":1}') as object;
    expect(Object.keys(findErrors(own) ?? {})).toEqual(['__proto__']);
  });

  it('encodes names that are not valid text', () => {
    expect(findNames({ query: { '\ud800a': 1 } })).toBe('%EF%BF%BDa');
  });

  it('finds every field where the endpoint knows none', () => {
    const unknown = findUnknownInput(
      { query: null, body: null },
      { query: { a: 1 }, body: { b: {} } },
    );
    expect(unknown && renderNames(unknown)).toBe('b, a');
  });
});

describe('reading a body', () => {
  it.each([
    [{ thing: { name: 'x', part: { name: 'y' } }, beside: 1 }],
    [{ name: 'x', part: null, beside: 1 }],
    [{ thing: { name: 'x' }, other: 1 }],
    [{ thing: { name: 'x', other: 1 } }],
    [{ thing: { name: 'x', beside: 1 } }],
    [{ thing: { name: 'x' }, name: 'y' }],
    [{ thing: { name: 'x', part: { name: 'y', other: 1 } } }],
    [{ thing: { name: 'x', part: {} } }],
    [{ name: 'x', other: undefined }],
    [JSON.parse('{"name":"x","__proto__":1}')],
  ])('notices whatever is unknown in %j', (body: unknown) => {
    const { hasUnread } = getFields(ThingCreation).readBody(body);
    const unknown = findUnknownInput({ query: null, body: ThingCreation }, { query: {}, body });
    expect(hasUnread).toBe(unknown !== undefined);
  });
});

describe('suggestNames', () => {
  const ADVICE = 'Leave out what is not known, or send it without Prefer: handling=strict.';
  const suggest = (input: { query?: unknown; body?: unknown }) => {
    const unknown = findUnknownInput(ENDPOINT, { query: {}, body: undefined, ...input });
    return unknown && suggestNames(unknown, ENDPOINT);
  };

  it('names what is spelt almost the same, whatever the case', () => {
    const body = { thing: { nmae: 'x', Part: {}, part: { nam: 'y' } } };
    expect(suggest({ body, query: { limt: '3' } })).toBe(
      `Did you mean name instead of nmae, part instead of Part, name instead of nam, limit instead of limt? ${ADVICE}`,
    );
  });

  it('names nothing that is another word', () => {
    expect(suggest({ body: { thing: { colour: 'x' } }, query: { z: '1' } })).toBe(ADVICE);
  });
});
