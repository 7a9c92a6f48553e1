import { describe, expect, it } from '@jest/globals';
import { Dto } from '#platform/http/dtos.js';
import { Field } from '#platform/http/fields.js';
import { defineKind, derive, field } from '#platform/http/resource-fields.js';
import { IntegersProperty } from '#platform/http/response-fields.js';
import { defineForm } from './forms.js';

const idsField = defineKind<number[]>(
  (options) => Field({ schema: { type: 'array' } }, options),
  IntegersProperty,
);

const FIELDS = {
  name: field.text({ max: 40, description: 'The name.' }),
  max_weight: field.integer({ min: 1, optional: true, description: 'In grams.' }),
  kind: field.oneOf(['green', 'black'], { default: 'green', description: 'The kind.' }),
  organic: field.boolean({ default: true, description: 'Whether it is organic.' }),
  shop_ids: idsField({ optional: true, description: 'The shops that have it.' }),
};

@Dto('Tea')
class TeaDto extends derive.input(FIELDS) {}

class TeaChangesDto extends derive.changes(FIELDS) {}

const form = defineForm(TeaDto, ['name', 'max_weight', 'kind', 'organic']);

describe('a form', () => {
  it('has a box for each value of a list', () => {
    const shops = defineForm(TeaDto, ['shop_ids']);
    const values = { shop_ids: ['3', '5'] };
    expect(shops.read({ 'shop_ids:3': 'yes', 'shop_ids:5': 'yes', shop: 'yes' })).toEqual(values);
    expect(shops.toValues({ shopIds: [3, 5] })).toEqual(values);
    expect(shops.toValues({ shop_ids: null })).toEqual({ shop_ids: [] });
    const checked = { checked: true };
    expect(shops.toInputs(values)).toEqual({ 'shop_ids:3': checked, 'shop_ids:5': checked });
  });

  it('reads texts without space around them or their defaults, and which boxes are ticked', () => {
    const posted = { name: ' Assam\r\nTGFOP ', max_weight: 'x', organic: 'yes' };
    const values = { name: 'Assam\nTGFOP', max_weight: 'x', kind: 'green', organic: true };
    expect(form.read(posted)).toEqual(values);
    expect(form.read({}).organic).toBe(false);
  });

  it('shows a record by its names in JSON or in the code, and the defaults of the API', () => {
    const tea = { name: 'Assam', max_weight: '500', kind: 'black', organic: false };
    expect(form.toValues({ ...tea, maxWeight: 7 })).toEqual(tea);
    expect(form.toValues({ ...tea, max_weight: undefined, maxWeight: 500 })).toEqual(tea);
    expect(form.toValues({ name: 'Sencha', maxWeight: null })).toEqual({
      name: 'Sencha',
      max_weight: '',
      kind: 'green',
      organic: true,
    });
  });

  it('requires and limits what the API does', () => {
    const inputs = form.toInputs(form.toValues({ maxWeight: 500 }));
    expect(inputs['name']).toMatchObject({ value: '', required: true, maxlength: 40 });
    const { max_weight: weight } = inputs;
    expect(weight).toMatchObject({ value: '500', type: 'number', inputmode: 'numeric', min: 1 });
    expect(weight).toMatchObject({ required: false, max: undefined });
    expect(inputs['kind']).toMatchObject({ value: 'green', required: false });
    expect(inputs['organic']).toEqual({ checked: true });
  });

  it('requires what a change may leave out but not clear', () => {
    const changes = defineForm(TeaChangesDto, ['name', 'max_weight']);
    expect(changes.toInputs(changes.toValues({}))).toMatchObject({
      name: { required: true },
      max_weight: { required: false },
    });
  });
});
