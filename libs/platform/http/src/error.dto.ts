import { ERROR_CODES } from '#kernel/error-catalogue.js';
import type { ExistingRecord, FieldErrors } from '#kernel/errors.js';
import { Dto } from './fields.pipe.js';
import {
  FieldErrorsProperty,
  IntegerProperty,
  ObjectProperty,
  OneOfProperty,
  TextProperty,
  TextsProperty,
  TimestampProperty,
} from './response-fields.js';

export const ERROR_PAGE = '/docs/errors';

@Dto('Versioning')
class VersioningBody {
  @TextProperty() declare readonly current: string;
  @TextsProperty() declare readonly supported: string[];
  @TextsProperty() declare readonly deprecated: string[];
  @TextProperty({ format: 'uri' }) declare readonly policy_url: string;
  @TextProperty() declare readonly signalling: string;
  @TimestampProperty({ optional: true }) declare readonly deprecation_date?: string;
  @TimestampProperty({ optional: true }) declare readonly sunset_date?: string;
}

@Dto('ExistingRecord')
class ExistingRecordBody {
  @OneOfProperty(['customer', 'customer_card'], { description: 'The kind of record that has it' })
  declare readonly type: ExistingRecord['type'];
  @IntegerProperty({ description: 'The id of that record' }) declare readonly id: number;
}

/** Documents the body of an error response (ERR-01 to ERR-07). */
@Dto('Error')
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

  @ObjectProperty(() => ExistingRecordBody, {
    optional: true,
    description: 'With the code taken: the record that has the value',
  })
  declare readonly existing?: ExistingRecordBody;

  @TextProperty({ optional: true, description: 'How to fix it' })
  declare readonly resolution?: string;

  @TextProperty({ format: 'uri' }) declare readonly documentation_url: string;
  @TextProperty() declare readonly request_id: string;

  @ObjectProperty(() => VersioningBody, {
    optional: true,
    description: 'On a 410 of the status: which versions there are instead',
  })
  declare readonly versioning?: VersioningBody;
}

/** Documents problem details (RFC 9457), for clients that accept application/problem+json. */
@Dto('Problem')
export class ProblemBody extends ErrorBody {
  @TextProperty({ format: 'uri-reference' }) declare readonly type: string;
  @TextProperty() declare readonly title: string;
  @IntegerProperty() declare readonly status: number;
  @TextProperty() declare readonly detail: string;
  @TextProperty({ format: 'uri-reference' }) declare readonly instance: string;
}
