import { isBlank } from '#platform/http/conversions.js';
import {
  Check,
  Field,
  TextField,
  TimeField,
  listKind,
  matchingKind,
  textKind,
  type FieldKind,
} from '#platform/http/fields.js';
import { Dto } from '#platform/http/dtos.js';
import { defineKind } from '#platform/http/resource-fields.js';
import {
  ObjectsProperty,
  TextProperty,
  TimestampProperty,
} from '#platform/http/response-fields.js';
import { STRIP_PRESETS } from './card-appearance.js';
import type { AuxiliaryField, CardTexts } from './card.events.js';
import { MAX_MESSAGE_LENGTH, PLACEHOLDERS, findMessageIssue } from './card-texts.js';

const MAX_AUXILIARY_FIELDS = 2;
const PRESET = /^[a-z0-9_-]{1,64}$/;

const AUXILIARY_DESCRIPTIONS = {
  label: 'The label above the value.',
  value: 'The text.',
};

@Dto('AuxiliaryFieldInput')
export class AuxiliaryFieldDto {
  @TextField({ optional: true, description: AUXILIARY_DESCRIPTIONS.label }) declare readonly label:
    | string
    | null;
  @TextField({ description: AUXILIARY_DESCRIPTIONS.value }) declare readonly value: string;
}

@Dto('AuxiliaryField')
class AuxiliaryFieldJson {
  @TextProperty({ example: 'aux_1', description: 'The key of the field in the pass.' })
  declare readonly key: string;
  @TextProperty({ nullable: true, example: 'Open', description: AUXILIARY_DESCRIPTIONS.label })
  declare readonly label: string | null;
  @TextProperty({ example: 'Mo to Sa', description: AUXILIARY_DESCRIPTIONS.value })
  declare readonly value: string;
}

export const auxiliaryField = defineKind<AuxiliaryField[]>(
  (options) => {
    const description = 'Replaces the list; blank elements are dropped';
    const label = (i: number) => `${i + 1}: `;
    const kind: FieldKind = {
      ...listKind(() => AuxiliaryFieldDto, MAX_AUXILIARY_FIELDS, label),
      convert: (input) =>
        Array.isArray(input) ? input.filter((element) => !isBlankField(element)) : input,
      finish: (fields: AuxiliaryFieldDto[]) =>
        fields.map((field, i) => ({ key: `aux_${i + 1}`, ...field })),
    };
    return Field(kind, { ...options, description });
  },
  (docs) => ObjectsProperty(() => AuxiliaryFieldJson, docs),
);

export const presetField = defineKind<string>((options) => {
  const description = `Pictures: ${STRIP_PRESETS.join(', ')}; any other value shows the colour`;
  return Field(matchingKind(PRESET, 64), { ...options, description });
}, TextProperty);

export const expiryField = defineKind<string>((options) => {
  const description = 'When the card expires; null: never';
  const finish = (time: Date) => time.toISOString();
  return TimeField({ ...options, moment: 'end', description, finish });
}, TimestampProperty);

/** Declares a text that a store writes itself for a notification. @param purpose begins the description */
export function messageField(name: keyof CardTexts, purpose: string, example: string) {
  const check = Check((text: string) => findMessageIssue(text, name));
  const placeholders = PLACEHOLDERS[name].map((placeholder) => `{${placeholder}}`).join(', ');
  return defineKind<string>(
    (options) => Field(textKind(MAX_MESSAGE_LENGTH, check), options),
    TextProperty,
  )({
    optional: true,
    description: `${purpose}. It may have ${placeholders}. Null: a text in the store’s language.`,
    response: { example },
  });
}

/** Tells whether an element of the list has neither a label nor a value, so that it is dropped. */
export function isBlankField(element: unknown): boolean {
  if (element === null) return true;
  if (typeof element !== 'object' || Array.isArray(element)) return false;
  const { label, value } = element as Record<string, unknown>;
  return isBlank(label) && isBlank(value);
}
