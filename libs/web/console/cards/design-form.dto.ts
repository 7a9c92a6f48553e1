import type { Form } from '#platform/http/body-kinds.js';
import type { Translations } from '#translations/translations.js';
import { CreateCardDto } from '#loyalty/cards/card.dto.js';
import type { Card } from '#loyalty/cards/card.js';
import type { StripPreset } from '#loyalty/cards/card-appearance.js';
import type { Reward } from '#loyalty/rewards/reward.js';
import { defineForm } from '#web/pages/forms.js';
import { CARD_TEMPLATES } from './card-templates.js';
import { MAX_ROWS, NEW_ROW, toLastDay, type DesignForm, type RewardRow } from './design-form.js';

export const cardForm = defineForm(CreateCardDto, [
  'name',
  'header_text',
  'card_color',
  'text_color',
  'stamp_icon',
  'stamp_color',
  'stamp_background_color',
  'stamps_required',
  'initial_stamps',
  'strip_type',
  'strip_color',
  'strip_opacity',
  'strip_preset',
  'max_stamps_per_request',
  'max_stamps_per_day',
  'min_seconds_between_stamps',
  'barcode_format',
  'stamp_message',
  'reward_message',
  'redemption_message',
  'show_member_field',
  'show_stamps_to_reward_field',
]);

/** Reads the entered values, which are shown again with errors. */
export function readDesignForm(form: Form): DesignForm {
  const read = (name: string) => (form[name] ?? '').trim();
  const rewards: RewardRow[] = [];
  for (let row = 0; row < MAX_ROWS && form[`reward_${row}_name`] !== undefined; row++) {
    rewards.push({
      id: read(`reward_${row}_id`),
      name: read(`reward_${row}_name`),
      stamps: read(`reward_${row}_stamps`),
      description: read(`reward_${row}_description`),
      isRemoved: form[`reward_${row}_removed`] !== undefined,
      isBeyondMeant: form[`reward_${row}_beyond`] !== undefined,
    });
  }
  const fields = {
    ...cardForm.read(form),
    // A drawing has its own colours unless it shall have another one (CARD-63).
    strip_color_same:
      form['strip_type'] === 'preset'
        ? form['strip_tinted'] === undefined
        : form['strip_color_same'] !== undefined,
    aux_label_1: read('aux_label_1'),
    aux_value_1: read('aux_value_1'),
    aux_label_2: read('aux_label_2'),
    aux_value_2: read('aux_value_2'),
    expires_on: read('expires_on'),
  };
  return { fields, rewards };
}

export function toDesignForm(card: Card, rewards: readonly Reward[], timeZone: string): DesignForm {
  const [first, second] = card.auxiliaryFields;
  return {
    fields: {
      ...cardForm.toValues(card),
      strip_color: card.stripColor ?? card.cardColor,
      strip_color_same: card.stripColor === null,
      aux_label_1: first?.label ?? '',
      aux_value_1: first?.value ?? '',
      aux_label_2: second?.label ?? '',
      aux_value_2: second?.value ?? '',
      expires_on: toLastDay(card.expiresAt, timeZone),
    },
    rewards: rewards.map(({ id, name, stampsRequired, description }) => ({
      id: String(id),
      name,
      stamps: String(stampsRequired),
      description: description ?? '',
      isRemoved: false,
      isBeyondMeant: stampsRequired > card.stampsRequired,
    })),
  };
}

/** Fills the form of a new card. @param key null: without a template */
export function createDesignForm(
  key: StripPreset | null,
  texts: Translations['cardPages']['templates'],
): DesignForm {
  const template = CARD_TEMPLATES[key ?? 'coffee'];
  return {
    fields: {
      ...cardForm.toValues({
        ...template,
        name: key === null ? '' : texts[key].name,
        stampIcon: key === null ? 'star' : template.icon,
        stripType: key === null ? 'color' : 'preset',
        stripColor: template.cardColor,
        stripPreset: key,
      }),
      strip_color_same: true,
      aux_label_1: '',
      aux_value_1: '',
      aux_label_2: '',
      aux_value_2: '',
      expires_on: '',
    },
    rewards:
      key === null
        ? []
        : [{ ...NEW_ROW, name: texts[key].reward, stamps: String(template.stampsRequired) }],
  };
}
