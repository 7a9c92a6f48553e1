import { isBlank } from '#http/conversions.js';
import {
  Check,
  Field,
  TextField,
  TimeField,
  listKind,
  matchingKind,
  textKind,
  type FieldKind,
  type FieldOptions,
} from '#http/fields.js';
import { Dto } from '#http/dtos.js';
import { STRIP_PRESETS } from './card-appearance.js';
import type { CardMessages } from './card.events.js';
import { MAX_MESSAGE_LENGTH, PLACEHOLDERS, findMessageError } from './card-messages.js';

const MAX_AUXILIARY_FIELDS = 2;
const PRESET = /^[a-z0-9_-]{1,64}$/;

export const AUXILIARY_DESCRIPTIONS = {
  label: 'The label above the value.',
  value: 'The text.',
};

@Dto('AuxiliaryFieldInput')
class AuxiliaryFieldDto {
  @TextField({ optional: true, description: AUXILIARY_DESCRIPTIONS.label }) declare readonly label:
    | string
    | null;
  @TextField({ description: AUXILIARY_DESCRIPTIONS.value }) declare readonly value: string;
}

export function AuxiliaryFieldsField(options: FieldOptions): PropertyDecorator {
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
}

export function MessageField(name: keyof CardMessages, options: FieldOptions): PropertyDecorator {
  const check = Check((text: string) => findMessageError(text, name));
  return Field(textKind(MAX_MESSAGE_LENGTH, check), options);
}

export function describeMessage(name: keyof CardMessages, begin: string): string {
  const placeholders = PLACEHOLDERS[name].map((one) => `{${one}}`).join(', ');
  return `${begin}. It may have ${placeholders}. Null: a text in the store’s language.`;
}

export function PresetField(options: FieldOptions): PropertyDecorator {
  const description = `Pictures: ${STRIP_PRESETS.join(', ')}; any other value shows the colour`;
  return Field(matchingKind(PRESET, 64), { ...options, description });
}

export function ExpiryField(options: FieldOptions): PropertyDecorator {
  const description = 'When the card expires; null: never';
  const finish = (time: Date) => time.toISOString();
  return TimeField({ ...options, moment: 'end', description, finish });
}

function isBlankField(element: unknown): boolean {
  if (element === null) return true;
  if (typeof element !== 'object' || Array.isArray(element)) return false;
  const { label, value } = element as Record<string, unknown>;
  return isBlank(label) && isBlank(value);
}
