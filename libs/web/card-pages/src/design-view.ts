import { formatCount, type Localization } from '#translations/translations.js';
import type { Translations } from '#translations/en.js';
import type { FieldErrors } from '#kernel/errors.js';
import { BARCODE_FORMATS } from '#cards/barcode.js';
import { STAMP_ICONS, STRIP_PRESETS } from '#cards/card-appearance.js';
import { loadAsset } from '#pages/assets.js';
import type { FormErrors } from '#pages/form-errors.js';
import { loadView } from '#pages/view.js';
import type { DesignedCard } from './designed-card.js';
import { withEmptyRow, type DesignForm } from './design-form.js';
import type { FrontsView } from './fronts-view.js';
import { CARD_STYLE } from './list-view.js';
import { ICON_STYLE } from './stamp-icon-style.js';

export type DesignView = ReturnType<typeof createDesignView>;
export const designView = loadView<DesignView>(import.meta.url, './views/design.eta');
export const DESIGN_SCRIPT = loadAsset(import.meta.url, './assets/card-design.js');

/** What the form shows. @property designed null: the card is new @property seen when it was changed last */
export type DesignState = {
  form: DesignForm;
  designed: DesignedCard | null;
  errors: FormErrors | null;
  done: unknown;
  seen: string | undefined;
};

type Texts = Translations['cardPages'];

/** Creates the data of the designer. Paths are from the root of the service. */
export function createDesignView(
  { form, designed, errors, done, seen }: DesignState,
  {
    base,
    posters,
    receipt,
    preview,
    localization,
  }: {
    base: string;
    posters: string;
    receipt: string;
    preview: FrontsView;
    localization: Localization;
  },
) {
  const t = localization.t.cardPages;
  const id = designed?.card.id;
  const path = id === undefined ? base : `${base}/${id}`;
  const holderCount = designed?.holderCount ?? 0;
  const fieldErrors = translateErrors(errors?.fields ?? {}, t);
  return {
    t,
    style: CARD_STYLE.path,
    iconStyle: ICON_STYLE.path,
    icons: STAMP_ICONS,
    barcodes: BARCODE_FORMATS.map((value) => ({ value, text: t.barcodes[value] })),
    presets: listPresets(form.fields.strip_preset, t),
    base,
    path,
    isNew: id === undefined,
    isArchived: designed !== null && designed.card.archivedAt !== null,
    hasPicture: designed !== null && designed.card.stripPicture !== null,
    title: designed?.card.name ?? t.newTitle,
    previewPath: id === undefined ? `${base}/preview` : `${base}/preview?card=${id}`,
    posters: id === undefined ? null : `${posters}?card=${id}`,
    done: done === 'saved' ? t.saved : done === 'created' ? t.created : '',
    isCreated: done === 'created',
    seen,
    receipt,
    preview,
    fields: form.fields,
    rewards: listRows(form, localization),
    errors: fieldErrors,
    // No part of the page shows the errors of these two.
    errorText: [errors?.text ?? '', fieldErrors['stamp_icon'], fieldErrors['strip_type']]
      .flat()
      .filter(Boolean)
      .join('\n'),
    changes:
      id === undefined
        ? ''
        : holderCount === 0
          ? t.changesNone
          : formatCount(t.changes, holderCount, localization),
  };
}

/** Lists the drawings to choose from. A name that is not drawn is accepted by the API, and kept. */
function listPresets(current: string, t: Texts): { value: string; text: string }[] {
  const presets = [
    { value: '', text: t.noPreset },
    ...STRIP_PRESETS.map((value) => ({ value, text: t.templates[value].shop })),
  ];
  return presets.some(({ value }) => value === current)
    ? presets
    : [...presets, { value: current, text: current }];
}

function listRows({ rewards }: DesignForm, { t, locale }: Localization) {
  const numbers = new Intl.NumberFormat(locale);
  return withEmptyRow(rewards).map((row, index) => ({
    ...row,
    index,
    legend: t.cardPages.reward(numbers.format(index + 1)),
    anchor: row.id === '' && row.name === '' && row.stamps === '' ? 'new' : String(index),
  }));
}

/** Words the errors of the API for people. */
function translateErrors(errors: FieldErrors, t: Texts): FieldErrors {
  return Object.fromEntries(
    Object.keys(errors)
      .filter((field) => field !== 'base')
      .map((field) => [field, [wordError(field, t)]]),
  );
}

function wordError(field: string, { errors: t }: Texts): string {
  if (/^reward_\d+_name$/.test(field)) return t.rewardName;
  if (/^reward_\d+_stamps$/.test(field)) return t.rewardStamps;
  if (/^reward_\d+_description$/.test(field)) return t.rewardDescription;
  switch (field) {
    case 'name':
    case 'stamps_required':
    case 'initial_stamps':
    case 'strip_opacity':
    case 'header_text':
    case 'auxiliary_fields':
    case 'expires_at':
      return t[field];
    case 'stamp_message':
    case 'reward_message':
    case 'redemption_message':
      return t.message;
    case 'strip_image':
      return t.picture;
    case 'max_stamps_per_request':
    case 'max_stamps_per_day':
    case 'min_seconds_between_stamps':
      return t.limit;
    default:
      return field.endsWith('_color') ? t.color : t.choice;
  }
}
