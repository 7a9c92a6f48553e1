import type { FieldErrors } from '#platform/kernel/errors.js';
import { Dto } from '#platform/http/dtos.js';
import {
  FieldErrorsProperty,
  IntegerProperty,
  ObjectProperty,
  OneOfProperty,
  TextProperty,
  TextsProperty,
  TimestampProperty,
} from '#platform/http/response-fields.js';
import { ERROR_CODES } from './error-catalogue.js';

const RECORD_TYPES = ['customer', 'customer_card'] as const;

@Dto('Versioning')
class VersioningBody {
  @TextProperty({ description: 'The version to use.' }) declare readonly current: string;
  @TextsProperty({}, { description: 'Versions in service.' }) declare readonly supported: string[];
  @TextsProperty({}, { description: 'Deprecated versions.' })
  declare readonly deprecated: string[];
  @TextProperty({ format: 'uri', description: 'The policy for retiring versions, for people.' })
  declare readonly policy_url: string;
  @TextProperty({ description: 'The headers that announce the end of a version.' })
  declare readonly signalling: string;
  @TimestampProperty({
    optional: true,
    description: 'The date from which this version is deprecated.',
  })
  declare readonly deprecation_date?: string;
  @TimestampProperty({ optional: true, description: 'When this version stops working.' })
  declare readonly sunset_date?: string;
}

@Dto('ExistingRecord')
class ExistingRecordBody {
  @OneOfProperty(RECORD_TYPES, { description: 'The kind of record that has it' })
  declare readonly type: (typeof RECORD_TYPES)[number];
  @IntegerProperty({ description: 'The id of that record' }) declare readonly id: number;
}

/** Documents the body of an error response (ERR-01 to ERR-07). */
@Dto('ErrorResponse')
export class ErrorBody {
  @TextProperty({ description: 'The error in words, for people' })
  declare readonly error: string;

  @OneOfProperty(ERROR_CODES, { description: 'The kind of error, for programs' })
  declare readonly code: string;

  @FieldErrorsProperty({
    optional: true,
    description: 'On 422: messages by field; base is for the whole record',
  })
  declare readonly errors?: FieldErrors;

  @FieldErrorsProperty({
    optional: true,
    description:
      'On 422: the codes of the messages in errors, by field and in the same order. More may be added',
  })
  declare readonly error_codes?: Record<string, string[]>;

  @ObjectProperty(() => ExistingRecordBody, {
    optional: true,
    description: 'With the code taken: the record that has the value',
  })
  declare readonly existing?: ExistingRecordBody;

  @TextProperty({
    optional: true,
    nullable: true,
    description:
      'With the code cursor_ahead: the id of the event to continue after; null: continue from the beginning',
  })
  declare readonly resume_after?: string | null;

  @TextProperty({ optional: true, description: 'How to fix it' })
  declare readonly resolution?: string;

  @TextProperty({
    format: 'uri',
    description: 'A page for people that says what happened and what to do.',
  })
  declare readonly documentation_url: string;
  @TextProperty({ description: 'The id of the request, to be quoted to whoever runs the service.' })
  declare readonly request_id: string;

  @ObjectProperty(() => VersioningBody, {
    optional: true,
    description: 'On a 410 of the status: which versions there are instead',
  })
  declare readonly versioning?: VersioningBody;
}
