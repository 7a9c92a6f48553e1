import type { FieldErrors } from '#kernel/errors.js';
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

/** Published: codes may be added, never removed. */
export const ERROR_CODES = [
  'unauthorized',
  'rate_limited',
  'version_sunset',
  'not_found',
  'method_not_allowed',
  'validation_failed',
  'malformed_json',
  'malformed_request',
  'header_fields_too_large',
  'request_timeout',
  'payload_too_large',
  'unsupported_media_type',
  'insufficient_stamps',
  'reward_inactive',
  'card_expired',
  'stamp_limit_reached',
  'idempotency_key_reused',
  'idempotency_in_progress',
  'internal',
  'unavailable',
] as const;

/** Where people read what each code means. */
export const ERROR_PAGE = '/docs/errors';

export type ErrorCode = (typeof ERROR_CODES)[number];

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

/** Sections 1 and 2.4. */
@Dto('Error')
export class ErrorBody {
  @TextProperty({ description: 'What went wrong, for people' })
  declare readonly error: string;

  @OneOfProperty(ERROR_CODES, { description: 'The same for programs' })
  declare readonly code: string;

  @FieldErrorsProperty({
    optional: true,
    description: 'On 422: messages by field; base is a fault of the whole record',
  })
  declare readonly errors?: FieldErrors;

  @TextProperty({ optional: true, description: 'How to put it right' })
  declare readonly resolution?: string;

  @TextProperty({ format: 'uri' }) declare readonly documentation_url: string;
  @TextProperty() declare readonly request_id: string;

  @ObjectProperty(() => VersioningBody, {
    optional: true,
    description: 'On 410 of the status: which versions there are instead',
  })
  declare readonly versioning?: VersioningBody;
}

/** RFC 9457, for whoever prefers application/problem+json. */
@Dto('Problem')
export class ProblemBody extends ErrorBody {
  @TextProperty({ format: 'uri-reference' }) declare readonly type: string;
  @TextProperty() declare readonly title: string;
  @IntegerProperty() declare readonly status: number;
  @TextProperty() declare readonly detail: string;
  @TextProperty({ format: 'uri-reference' }) declare readonly instance: string;
}
