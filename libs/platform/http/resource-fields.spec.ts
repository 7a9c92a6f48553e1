import { describe, expect, it } from '@jest/globals';
import { InvalidFieldsError } from '#platform/kernel/errors.js';
import { PLATFORM_ISSUES } from '#platform/kernel/issues.js';
import { Dto, readBody } from './dtos.js';
import { derive, field, ID, pick, type FieldsOf } from './resource-fields.js';

type Attributes = { name: string; maxWeight: number | null; place: number; isOpen: boolean };
type New = Omit<Attributes, 'place'> & { place: number | null };

const FIELDS = {
  name: field.text({ max: 5, description: 'The name.' }),
  max_weight: field.integer({ min: 1, optional: true, description: 'The weight.' }),
  place: field.integer({ description: 'The place.', create: { optional: true } }),
  is_open: field.boolean({ default: true, description: 'Whether it is open.' }),
} satisfies FieldsOf<Attributes, New>;

const RESPONSE = { id: ID, ...pick(FIELDS, 'is_open', 'max_weight') };

@Dto('SpecBoxInput', { wrapper: 'box' })
class CreateBoxDto extends derive.input(FIELDS) {}

@Dto('SpecBoxChanges', { wrapper: 'box' })
class UpdateBoxDto extends derive.changes(FIELDS) {}

class BoxJson extends derive.response(RESPONSE) {}
const toBoxJson = derive.toJson(RESPONSE);
const renderBox = derive.toJsonWith(RESPONSE);
const toAttributes = derive.toAttributes(FIELDS);

const create = (box: object): New => toAttributes(readBody(CreateBoxDto, { box }));
const change = (box: object): Partial<Attributes> => toAttributes(readBody(UpdateBoxDto, { box }));

describe('the fields of a resource', () => {
  it('are required, null or have their default when the record is created', () => {
    expect(create({ name: 'a' })).toEqual({
      name: 'a',
      maxWeight: null,
      place: null,
      isOpen: true,
    });
    expect(() => create({})).toThrow(new InvalidFieldsError({ name: [PLATFORM_ISSUES.required] }));
  });

  it('are left alone by a change that does not name them, and cleared by null if they may be null', () => {
    expect(change({})).toEqual({});
    expect(change({ max_weight: null, is_open: false })).toEqual({
      maxWeight: null,
      isOpen: false,
    });
    expect(() => change({ place: null })).toThrow(
      new InvalidFieldsError({ place: [PLATFORM_ISSUES.required] }),
    );
  });

  it('are checked by the same limits in both', () => {
    const errors = {
      name: [PLATFORM_ISSUES.too_long({ max: 5 })],
      max_weight: [PLATFORM_ISSUES.too_small({ min: 1 })],
    };
    const box = { name: 'longer', max_weight: 0 };
    expect(() => create(box)).toThrow(new InvalidFieldsError(errors));
    expect(() => change(box)).toThrow(new InvalidFieldsError(errors));
  });

  it('are rendered in the order of the table, and nothing else is', () => {
    const record = { id: 1, isOpen: true, maxWeight: null, secret: 'x' };
    const json: BoxJson = toBoxJson(record);
    expect(Object.entries(json)).toEqual([
      ['id', 1],
      ['is_open', true],
      ['max_weight', null],
    ]);
  });

  it('may be computed, in place of a field of the record too', () => {
    const record = { id: 1, isOpen: true };
    expect(renderBox(record, { maxWeight: 5, isOpen: false })).toEqual({
      id: 1,
      is_open: false,
      max_weight: 5,
    });
  });

  it('are converted from a request, and nothing else that it has is', () => {
    expect(toAttributes({ max_weight: 5, is_open: undefined, secret: 'x' })).toEqual({
      maxWeight: 5,
    });
  });

  it('have no option that does not exist, for the compiler', () => {
    // @ts-expect-error misspelt
    field.text({ optionl: true, description: '' });
    // @ts-expect-error a text has no minimum
    field.text({ min: 3, description: '' });
    // @ts-expect-error derived from `optional`
    field.integer({ clearable: true, description: '' });
    // @ts-expect-error misspelt
    field.oneOf(['a'], { defualt: 'a', description: '' });
    expect(field.text({ max: 3, description: '' })).toBeDefined();
  });

  it('must be those of the attributes, for the compiler', () => {
    const { is_open: _, ...incomplete } = FIELDS;
    const wrong = { ...FIELDS, name: field.integer({ description: '' }) };
    const nullable = { ...FIELDS, name: field.text({ optional: true, description: '' }) };
    const accept = (fields: FieldsOf<Attributes, New>) => Object.keys(fields);
    accept(FIELDS);
    // @ts-expect-error is_open is missing
    accept(incomplete);
    // @ts-expect-error the name is no number
    accept(wrong);
    // @ts-expect-error the name is never null
    accept(nullable);
    // @ts-expect-error the record has no max_weight
    expect(toBoxJson({ id: 1, isOpen: true })).toEqual({ id: 1, is_open: true });
  });
});
