import { Field, IntegerField, parsedTextKind } from '#platform/http/fields.js';
import { Dto } from '#platform/http/dtos.js';
import { IntegerProperty, TextProperty } from '#platform/http/response-fields.js';
import type { MessageSettings } from './message-settings.js';
import { parseTimeOfDay } from './quiet-hours.js';
import { ISSUES } from '#translations/issues.js';

const WORDS = {
  quiet_from:
    'From this time of the store’s day nothing is sent, until quiet_to; null: messages go out at any time.',
  quiet_to: 'The time of day at which the quiet hours end.',
  max_per_week:
    'How many messages a customer may have got in seven days for a rule to send another one.',
};

const timeOfDay = parsedTextKind(
  5,
  (text) => (parseTimeOfDay(text) === undefined ? undefined : text),
  ISSUES.time_of_day_invalid,
);
const TIME_OF_DAY = {
  ...timeOfDay,
  schema: { ...timeOfDay.schema, pattern: '^([01][0-9]|2[0-3]):[0-5][0-9]$' },
};

@Dto('MessageSettingsChanges', { example: { quiet_from: '20:00', quiet_to: '09:00' } })
export class UpdateMessageSettingsDto {
  @Field(TIME_OF_DAY, { clearable: true, description: WORDS.quiet_from, example: '20:00' })
  declare readonly quiet_from?: string | null;
  @Field(TIME_OF_DAY, { clearable: true, description: WORDS.quiet_to, example: '09:00' })
  declare readonly quiet_to?: string | null;
  @IntegerField({ min: 1, max: 7, omittable: true, description: WORDS.max_per_week, example: 2 })
  declare readonly max_per_week?: number;
}

@Dto('MessageSettings')
export class MessageSettingsJson {
  @TextProperty({ nullable: true, example: '21:00', description: WORDS.quiet_from })
  declare readonly quiet_from: string | null;
  @TextProperty({ nullable: true, example: '08:00', description: WORDS.quiet_to })
  declare readonly quiet_to: string | null;
  @IntegerProperty({ example: 2, description: WORDS.max_per_week })
  declare readonly max_per_week: number;
}

export function toMessageSettingsJson({ quiet, maxPerWeek }: MessageSettings): MessageSettingsJson {
  return {
    quiet_from: quiet?.from ?? null,
    quiet_to: quiet?.to ?? null,
    max_per_week: maxPerWeek,
  };
}
