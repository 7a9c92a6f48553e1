import { describe, expect, it } from '@jest/globals';
import { getMetadataStorage, validateSync } from 'class-validator';
import { InvalidFieldsError } from '#platform/kernel/errors.js';
import type { Issue } from '#platform/kernel/issues.js';
import {
  BooleanField,
  ColorField,
  Field,
  IntegerField,
  MetadataField,
  NumberField,
  OneOfField,
  PastDateField,
  TextField,
  TimeField,
  listKind,
} from './fields.js';
import { Dto, FieldsRule, readBody, readQuery } from './dtos.js';

class Kinds {
  @TextField({ max: 5, optional: true }) declare readonly text: string | null;
  @IntegerField({ min: 1, max: 9, optional: true }) declare readonly integer: number | null;
  @NumberField({ min: 0, max: 1, optional: true }) declare readonly number: number | null;
  @BooleanField({ optional: true }) declare readonly boolean: boolean | null;
  @OneOfField(['a', 'b'], { optional: true }) declare readonly choice: string | null;
  @ColorField({ optional: true }) declare readonly color: string | null;
  @TimeField({ optional: true, description: 'When' }) declare readonly time: Date | null;
  @PastDateField(() => '2026-03-01', { optional: true }) declare readonly day: string | null;
  @MetadataField({ optional: true }) declare readonly metadata: object | null;
}

const BEYOND = 'must not hold an integer beyond 9007199254740991: send it as a string';

const toIssue = (message: string) => ({ code: 'odd', params: {}, message });

/** Returns the message of a failed check, as its decorator has it. */
function getMessage(property: string, check: string, value: unknown): string | undefined {
  const metadata = getMetadataStorage()
    .getTargetValidationMetadatas(Kinds, '', true, false)
    // a check without a name has that of its type
    .find((rule) => rule.propertyName === property && (rule.name || rule.type) === check);
  const context = metadata?.context as Issue | ((value: unknown) => Issue | undefined) | undefined;
  return (typeof context === 'function' ? context(value) : context)?.message;
}

const getErrors = (read: () => unknown): unknown => {
  try {
    return read();
  } catch (error) {
    if (error instanceof InvalidFieldsError) return error.errors;
    throw error;
  }
};

describe('a field', () => {
  it.each([
    ['text', ' ab ', 'ab'],
    ['text', '☕☕☕☕☕', '☕☕☕☕☕'],
    ['integer', '+7', 7],
    ['integer', 7, 7],
    ['number', ' 0.5 ', 0.5],
    ['boolean', 0, false],
    ['boolean', 'true', true],
    ['choice', 'b', 'b'],
    ['color', ' #abc ', '#AABBCC'],
    ['time', '2026-03-01 12:00', new Date('2026-03-01T12:00:00Z')],
    ['time', '2026-03-01t12:00', new Date('2026-03-01T12:00:00Z')],
    ['time', '2026-03-01T12:00:00+0200', new Date('2026-03-01T10:00:00Z')],
    ['time', '2026-03-01 12:00:00 02', new Date('2026-03-01T10:00:00Z')],
    ['time', '2026-03-01T12:00:00z', new Date('2026-03-01T12:00:00Z')],
    ['time', '2026-03-01', new Date('2026-03-01T00:00:00Z')],
    ['day', '2026-03-01', '2026-03-01'],
    ['metadata', { a: { b: [1] } }, { a: { b: [1] } }],
    [
      'metadata',
      { a: 9007199254740991, b: -9007199254740991, c: 0.1 },
      {
        a: 9007199254740991,
        b: -9007199254740991,
        c: 0.1,
      },
    ],
    ['metadata', { a: '9007199254740993' }, { a: '9007199254740993' }],
  ])('of the kind %s reads %j as %j', (name, input, value) => {
    expect(readBody(Kinds, { [name]: input })).toMatchObject({ [name]: value });
  });

  it.each([
    ['text', 3, 'must be a string'],
    ['text', 'abcdef', 'must have at most 5 characters'],
    ['text', 'a\0', 'must not contain a NUL character'],
    ['text', '\ud800', 'must be valid Unicode text'],
    ['integer', 1.5, 'must be an integer'],
    ['integer', 'seven', 'must be an integer'],
    ['integer', 0, 'must be at least 1'],
    ['integer', '10', 'must be at most 9'],
    ['number', true, 'must be a number'],
    ['number', 1.1, 'must be between 0 and 1'],
    ['boolean', 'yes', 'must be true or false'],
    ['choice', 'c', 'must be one of a, b'],
    ['color', 'red', 'must be a colour such as #6B4226'],
    ['time', '2026-02-30', 'must be an ISO 8601 time such as 2026-01-31T12:00:00Z'],
    ['time', '0001-01-01T00:00:00+01:00', 'must be in the years 1 to 9999 in every time zone'],
    ['time', '9999-12-31T10:00:00Z', 'must be in the years 1 to 9999 in every time zone'],
    ['day', '2026-02-30', 'must be a real date such as 1990-05-31'],
    ['day', '2026-03-02', 'must not be in the future'],
    ['metadata', [], 'must be an object'],
    ['metadata', { a: '\0' }, 'must not contain a NUL character'],
    ['metadata', { a: Infinity }, 'must not hold so large a number'],
    ['metadata', { a: 9007199254740992 }, BEYOND],
    ['metadata', { a: -9007199254740992 }, BEYOND],
    ['metadata', { a: { b: [1, { c: 1e300 }] } }, BEYOND],
  ])('of the kind %s refuses %j: %s', (name, input, message) => {
    expect(getErrors(() => readBody(Kinds, { [name]: input }))).toEqual({ [name]: [message] });
  });

  it.each([
    { text: 'ab', integer: 9, number: 0.5, boolean: true, choice: 'a', metadata: {} },
    { text: 'abcdef', integer: 10, number: 2, boolean: 'x', choice: 'c', metadata: { a: '\0' } },
    { text: 3, integer: 1.5, number: 'x', color: 'red', day: '2026-03-02', metadata: [] },
  ])('reports the same errors as validateSync: %j', (input) => {
    const errors = validateSync(Object.assign(new Kinds(), input), { stopAtFirstError: true });
    const messages = errors.map(({ property, value, constraints = {} }) => [
      property,
      Object.keys(constraints).map((name) => getMessage(property, name, value)),
    ]);
    const reported = getErrors(() => void readBody(Kinds, input)) ?? {};
    expect(Object.fromEntries(messages)).toEqual(reported);
  });
});

class Presences {
  @TextField() declare readonly required: string;
  @TextField({ optional: true }) declare readonly optional: string | null;
  @IntegerField({ default: 10 }) declare readonly defaulted: number;
  @TextField({ clearable: true }) declare readonly clearable?: string | null;
  @TextField({ omittable: true }) declare readonly omittable?: string;
}

describe('readBody', () => {
  it.each([
    ['missing', {}, { required: 'x', optional: null, defaulted: 10 }],
    [
      'null',
      { optional: null, defaulted: null, clearable: null },
      { required: 'x', optional: null, defaulted: 10, clearable: null },
    ],
    [
      'blank',
      { optional: ' ', clearable: '' },
      { required: 'x', optional: null, defaulted: 10, clearable: null },
    ],
    [
      'present',
      { optional: 'o', defaulted: '3', clearable: 'c', omittable: 'm' },
      { required: 'x', optional: 'o', defaulted: 3, clearable: 'c', omittable: 'm' },
    ],
  ])('reads %s fields: %j becomes %j', (_, input, value) => {
    expect(readBody(Presences, { required: 'x', ...input })).toEqual(value);
  });

  it.each([
    ['required', { required: undefined }, 'is required'],
    ['required', { required: null }, 'is required'],
    ['required', { required: ' ' }, 'must not be blank'],
    ['defaulted', { defaulted: '' }, 'is required'],
    ['omittable', { omittable: null }, 'is required'],
    ['omittable', { omittable: ' ' }, 'must not be blank'],
  ])('refuses the %s field of %j: %s', (name, input, message) => {
    expect(getErrors(() => readBody(Presences, { required: 'x', ...input }))).toEqual({
      [name]: [message],
    });
  });

  it('reports all errors of all fields', () => {
    expect(getErrors(() => readBody(Presences, { defaulted: 'x', clearable: 3 }))).toEqual({
      required: ['is required'],
      defaulted: ['must be an integer'],
      clearable: ['must be a string'],
    });
  });

  it('ignores unknown and inherited keys', () => {
    const input: object = JSON.parse(
      '{"required": "x", "__proto__": {"optional": "o"}, "more": 1}',
    );
    expect(readBody(Presences, input)).toEqual({ required: 'x', optional: null, defaulted: 10 });
    const inherited = Object.create({ required: 'x' }) as object;
    expect(getErrors(() => readBody(Presences, inherited))).toEqual({ required: ['is required'] });
  });
});

@FieldsRule<Range>(
  ['from', 'to'],
  'to',
  ({ from, to }) => from <= to,
  toIssue('must not be before from'),
)
@FieldsRule<Range>(['to'], 'to', ({ to }) => to % 2 === 0, toIssue('must be even'))
class Range {
  @IntegerField() declare readonly from: number;
  @IntegerField() declare readonly to: number;
}

describe('FieldsRule', () => {
  it('reports the first rule that fails', () => {
    expect(readBody(Range, { from: 1, to: 2 })).toEqual({ from: 1, to: 2 });
    expect(getErrors(() => readBody(Range, { from: 4, to: 3 }))).toEqual({
      to: ['must not be before from'],
    });
  });

  it('checks a rule only when its fields are valid', () => {
    expect(getErrors(() => readBody(Range, { from: 'x', to: 3 }))).toEqual({
      from: ['must be an integer'],
      to: ['must be even'],
    });
  });
});

@Dto('SpecThing', { wrapper: 'thing', bare: true })
class Thing {
  @TextField() declare readonly name: string;
}

@Dto('SpecThingCreation', { wrapper: 'thing', bare: true, inside: Thing })
class ThingCreation extends Thing {
  @IntegerField({ optional: true }) declare readonly beside: number | null;
}

describe('readBody with a wrapper', () => {
  it('accepts a wrapped body, and a bare one that has a field of the wrapper', () => {
    expect(readBody(Thing, { thing: { name: 'a' } })).toEqual({ name: 'a' });
    expect(readBody(Thing, { name: 'a' })).toEqual({ name: 'a' });
    expect(readBody(ThingCreation, { thing: { name: 'a' }, beside: 1 })).toEqual({
      name: 'a',
      beside: 1,
    });
  });

  it.each([
    [
      { thing: { name: 'a' }, name: 'b' },
      { name: 'a', beside: null },
    ],
    [{ thing: { name: 'a', beside: 2 } }, { name: 'a', beside: null }],
    [
      { thing: { name: 'a', beside: 2 }, beside: 1, name: 'b' },
      { name: 'a', beside: 1 },
    ],
    [
      { name: 'a', beside: 1 },
      { name: 'a', beside: 1 },
    ],
  ])('reads each field only in its own place: %j', (body, value) => {
    expect(readBody(ThingCreation, body)).toEqual(value);
  });

  it('ignores fields outside the wrapper', () => {
    for (const body of [{ thing: {}, name: 'b' }, { thing: { thing: { name: 'a' } } }]) {
      expect(getErrors(() => readBody(Thing, body))).toEqual({ name: ['is required'] });
    }
    for (const thing of [null, [], [{ name: 'a' }], 'a', 1, true]) {
      expect(getErrors(() => readBody(ThingCreation, { thing, name: 'b', beside: 1 }))).toEqual({
        thing: ['must be an object'],
      });
    }
  });

  it.each([
    ['a body that is not an object', [], { base: ['The body must be a JSON object'] }],
    ['a wrapper that is not an object', { thing: 3 }, { thing: ['must be an object'] }],
    [
      'a body with neither wrapper nor fields',
      {},
      { thing: ['is required: wrap the fields in an object of this name'] },
    ],
    ['an empty wrapper', { thing: {} }, { name: ['is required'] }],
  ])('refuses %s', (_, body, errors) => {
    expect(getErrors(() => readBody(Thing, body))).toEqual(errors);
  });

  it('recognises a bare body by a field of the wrapper, not by one outside it', () => {
    expect(getErrors(() => readBody(ThingCreation, { beside: 1 }))).toEqual({
      thing: ['is required: wrap the fields in an object of this name'],
    });
  });
});

it('readQuery uses the last value of a repeated query parameter', () => {
  expect(readQuery(Range, { from: ['5', '1'], to: '2' })).toEqual({ from: 1, to: 2 });
});

class Ranges {
  @Field({
    ...listKind(
      () => Range,
      2,
      (i) => `${i}: `,
    ),
    finish: (ranges: Range[]) => ranges.map(({ from, to }) => to - from),
  })
  declare readonly lengths: number[];
  @Field({ schema: { type: () => Range }, nested: { dto: () => Range } }, { optional: true })
  declare readonly range: Range | null;
}

describe('a field of nested objects', () => {
  it('reads each as its class', () => {
    const lengths = [
      { from: 1, to: 2 },
      { from: '1', to: '4' },
    ];
    expect(readBody(Ranges, { lengths, range: { from: 1, to: '2' } })).toEqual({
      lengths: [1, 3],
      range: { from: 1, to: 2 },
    });
  });

  it.each([
    [3, ['must be a list of objects']],
    [[1, 2, 3], ['must have at most 2 elements']],
    [
      ['x', { to: 'x' }],
      ['0: must be an object', '1: from is required', '1: to must be an integer'],
    ],
  ])('refuses the list %j', (lengths, messages) => {
    expect(getErrors(() => readBody(Ranges, { lengths }))).toEqual({ lengths: messages });
  });

  it('reports one message when it may be null', () => {
    expect(getErrors(() => readBody(Ranges, { lengths: [], range: { to: 'x' } }))).toEqual({
      range: ['from is required, to must be an integer'],
    });
  });
});
