import { describe, expect, it } from '@jest/globals';
import { InvalidFieldsError } from '#platform/kernel/errors.js';
import { getTranslations } from '#translations/translations.js';
import { STRIP_PRESETS } from '#loyalty/cards/card-appearance.js';
import { findCardWarnings } from '#loyalty/cards/card-contrast.js';
import { createDraft } from './card-draft.js';
import { CARD_TEMPLATES } from './card-templates.js';
import { createDesignForm, readDesignForm } from './design-form.dto.js';
import { withEmptyRow } from './design-form.js';
import { parseDesign } from './parsed-design.dto.js';

const TEMPLATES = getTranslations('en').t.cardPages.templates;
const BERLIN = { timeZone: 'Europe/Berlin', previous: null };
const coffee = () => createDesignForm('coffee', TEMPLATES);

describe.each(STRIP_PRESETS)('the template %s', (key) => {
  it('is a valid card whose stamps and texts can be seen', () => {
    const form = createDesignForm(key, TEMPLATES);
    const { attributes, rewards } = parseDesign(form, BERLIN);
    expect(attributes).toMatchObject({ stripType: 'preset', stripPreset: key, expiresAt: null });
    expect(rewards).toMatchObject([{ id: null, stampsRequired: attributes.stampsRequired }]);
    expect(findCardWarnings(attributes)).toEqual([]);
    expect(CARD_TEMPLATES[key].stampsRequired).toBeLessThanOrEqual(21);
  });
});

describe('parseDesign', () => {
  it('ends a card with its last day in the time zone of the store', () => {
    const form = coffee();
    form.fields.expires_on = '2090-05-31';
    expect(parseDesign(form, BERLIN).attributes.expiresAt).toBe('2090-05-31T21:59:59.999Z');
    // The form shows the day alone.
    const expiresAt = '2090-05-31T08:00:00.000Z';
    const { attributes } = parseDesign(form, { ...BERLIN, previous: { expiresAt } });
    expect(attributes.expiresAt).toBe(expiresAt);
  });

  it('leaves out empty rows, and removes the rewards of emptied and of removed ones', () => {
    const row = { name: '', stamps: '', description: '', isRemoved: false, isBeyondMeant: false };
    const form = {
      ...coffee(),
      rewards: [
        { ...row, id: '' },
        { ...row, id: '7' },
        { ...row, id: '8', name: 'Tea', stamps: '4', isRemoved: true },
        { ...row, id: '9', name: 'Cake', stamps: ' 5 ' },
      ],
    };
    const { rewards, removedIds } = parseDesign(form, BERLIN);
    expect(removedIds).toEqual([7, 8]);
    expect(rewards).toMatchObject([{ id: 9, row: 3, name: 'Cake', stampsRequired: 5 }]);
  });

  it('reports the errors of all fields at once', () => {
    const form = coffee();
    Object.assign(form.fields, { name: '', card_color: 'red', max_stamps_per_day: '0' });
    Object.assign(form.fields, { aux_label_1: '', aux_value_1: '', aux_label_2: 'Open' });
    form.rewards = [
      {
        id: '',
        name: 'x',
        stamps: 'many',
        description: '',
        isRemoved: false,
        isBeyondMeant: false,
      },
    ];
    let error: unknown;
    try {
      parseDesign(form, BERLIN);
    } catch (thrown) {
      error = thrown;
    }
    expect(error).toBeInstanceOf(InvalidFieldsError);
    expect(Object.keys((error as InvalidFieldsError).errors).sort()).toEqual([
      'aux_value_2',
      'card_color',
      'max_stamps_per_day',
      'name',
      'reward_0_stamps',
    ]);
  });
});

describe('readDesignForm', () => {
  it('reads rows up to the first that is missing, and no more than thirty', () => {
    const fields = Object.fromEntries(
      Array.from({ length: 40 }, (_, index) => [`reward_${index}_name`, `r${index}`]),
    );
    expect(readDesignForm(fields).rewards).toHaveLength(30);
    expect(readDesignForm({ reward_0_name: 'a', reward_2_name: 'c' }).rewards).toHaveLength(1);
  });

  it('leaves one empty row to fill in', () => {
    expect(withEmptyRow([])).toHaveLength(1);
    expect(withEmptyRow(withEmptyRow([]))).toHaveLength(1);
  });
});

describe('createDraft', () => {
  it('draws whatever was entered', () => {
    const form = readDesignForm({ stamps_required: '-3', card_color: '<b>', stamp_icon: 'no' });
    const { design, rewards } = createDraft(form, null);
    expect(design).toMatchObject({ stamps: 1, cardColor: '#6B4226', icon: 'star', opacity: 100 });
    expect(rewards).toEqual([]);
  });
});
