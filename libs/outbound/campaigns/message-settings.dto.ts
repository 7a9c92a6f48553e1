import { Field, parsedTextKind } from '#platform/http/fields.js';
import { Dto } from '#platform/http/dtos.js';
import { defineKind, derive, field } from '#platform/http/resource-fields.js';
import { TextProperty } from '#platform/http/response-fields.js';
import type { MessageSettings } from './message-settings.js';
import { parseTimeOfDay } from './quiet-hours.js';
import { ISSUES } from '#translations/issues.js';

const timeOfDay = parsedTextKind(
  5,
  (text) => (parseTimeOfDay(text) === undefined ? undefined : text),
  ISSUES.time_of_day_invalid,
);
const TIME_OF_DAY = {
  ...timeOfDay,
  schema: { ...timeOfDay.schema, pattern: '^([01][0-9]|2[0-3]):[0-5][0-9]$' },
};

const timeOfDayField = defineKind<string>((options) => Field(TIME_OF_DAY, options), TextProperty);

const FIELDS = {
  quiet_from: timeOfDayField({
    optional: true,
    description:
      'From this time of the store’s day nothing is sent, until quiet_to; null: messages go out at any time.',
    example: '20:00',
    response: { example: '21:00' },
  }),
  quiet_to: timeOfDayField({
    optional: true,
    description: 'The time of day at which the quiet hours end.',
    example: '09:00',
    response: { example: '08:00' },
  }),
  max_per_week: field.integer({
    min: 1,
    max: 7,
    description:
      'How many messages a customer may have got in seven days for a rule to send another one.',
    example: 2,
  }),
};

@Dto('MessageSettingsChanges', { example: { quiet_from: '20:00', quiet_to: '09:00' } })
export class UpdateMessageSettingsDto extends derive.changes(FIELDS) {}

@Dto('MessageSettings')
export class MessageSettingsJson extends derive.response(FIELDS) {}

/** Converts the fields that the request contains, and no others. */
export const toSettingsChanges = derive.toAttributes(FIELDS);

export function toMessageSettingsJson({ quiet, maxPerWeek }: MessageSettings): MessageSettingsJson {
  return {
    quiet_from: quiet?.from ?? null,
    quiet_to: quiet?.to ?? null,
    max_per_week: maxPerWeek,
  };
}
